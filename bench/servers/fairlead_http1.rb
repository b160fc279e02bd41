# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead over HTTP/1.1, beside servers with HTTP/2.
    class FairleadHttp1 < Fairlead
      def name
        "fairlead-http1"
      end

      def http2?
        false
      end

      def http1?
        true
      end

      def note(_shape)
        "HTTP/1.1"
      end
    end
  end
end
