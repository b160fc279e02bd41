# frozen_string_literal: true

module Fairlead
  module Acme
    # Why there is no certificate: what the authority has said, or why it cannot be asked.
    class Problem < Error
      # The last part of the name that RFC 8555 §6.7 has for it ("rateLimited"), or a word of ours.
      attr_reader :type

      # How many seconds the authority wants us to wait; nil if it has not said.
      attr_reader :retry_after

      def initialize(type, message, retry_after: nil)
        @type = type
        @retry_after = retry_after
        super(message)
      end
    end
  end
end
