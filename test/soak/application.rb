# frozen_string_literal: true

require "digest/sha1" # at once: threads that load it concurrently get in each other's way
require "fiddle"
require "json"
require "timeout"
require_relative "pattern"
require_relative "application/asked"
require_relative "application/bodies"
require_relative "application/ends"
require_relative "application/answers"
require_relative "application/keepers"
require_relative "application/real_time"
require_relative "application/resources"
require_relative "application/sockets"
require_relative "application/troubles"

module Fairlead
  # The application of bin/soak: it does what a request demands, good or bad, and responds with bytes that the client can
  # verify (pattern.rb).
  module Soak
    class Application
      PLACES = [Answers, Keepers, RealTime, Resources, Sockets, Troubles].flat_map { |place| place.all.to_a }.to_h.freeze

      def call(env)
        asked = Asked.new(env)
        return [404, {}, []] unless asked.known?

        asked.check_peer
        count(env)
        PLACES.fetch(asked.name).call(asked)
      end

      private

      def count(env)
        Ends.open(:requests)
        env["rack.response_finished"] << ->(*) { Ends.close(:requests) }
      end
    end
  end
end
