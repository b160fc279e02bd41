# frozen_string_literal: true

require_relative "puma"

module Bench
  module Servers
    # Puma with Action Cable, which takes over the sockets and serves them on its own threads.
    class PumaCable < Puma
      def name
        "puma-cable"
      end

      def gem_name
        "puma"
      end

      def missing
        super || ("gem actioncable is not installed" unless cable)
      end

      def version
        "#{super} + Action Cable #{cable.version}"
      end

      def note(_shape)
        "one process; the `async` adapter, four threads that run commands, and the messages of the browser's client"
      end

      def dialect
        CableDialect.new("adapter" => "async")
      end

      def takes_requests?
        false
      end

      private

      def cable
        Gem::Specification.find_by_name("actioncable")
      rescue Gem::MissingSpecError
        nil
      end
    end
  end
end
