# frozen_string_literal: true

require_relative "puma"

module Bench
  module Servers
    # Puma with faye-websocket, which takes over the sockets and serves them on its own event loop.
    class PumaFaye < Puma
      def name
        "puma-faye"
      end

      def gem_name
        "puma"
      end

      def missing
        super || ("gem faye-websocket is not installed" unless faye)
      end

      def version
        "#{super} + faye-websocket #{faye.version}"
      end

      def note(_shape)
        "one process; the subscribers are an Array"
      end

      def dialect
        Dialect::FAYE
      end

      def takes_requests?
        false
      end

      private

      def faye
        Gem::Specification.find_by_name("faye-websocket")
      rescue Gem::MissingSpecError
        nil
      end
    end
  end
end
