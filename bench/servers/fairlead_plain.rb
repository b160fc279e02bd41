# frozen_string_literal: true

require_relative "fairlead"

module Bench
  module Servers
    # Fairlead without TLS, beside servers with it: shows the cost of TLS.
    class FairleadPlain < Fairlead
      def name
        "fairlead-plain"
      end

      def tls?
        false
      end

      def plain?
        true
      end

      def note(_shape)
        "without TLS"
      end
    end
  end
end
