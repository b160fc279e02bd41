# frozen_string_literal: true

require_relative "exchange"
require_relative "requests"

module PumaAnswers
  # Sends the same requests to Puma and to Fairlead.
  class Comparison
    # A different part of the responses to one request; a missing part is nil.
    Difference = Struct.new(:request, :part, :puma, :fairlead) do
      def to_s = "#{request}: #{part}: #{told(puma)} with Puma, #{told(fairlead)} with Fairlead"

      private

      def told(value) = value ? value[0, 200].inspect : "none"
    end

    # If one of these parts differs, the other parts cannot be expected to be the same.
    WHOLE = ["status", "status (2)"].freeze

    # The ports of the two servers.
    def initialize(puma, fairlead)
      @puma = puma
      @fairlead = fairlead
    end

    # +requests+: name => the requests to send at once.
    def differences(requests)
      requests.flat_map do |name, texts|
        theirs, ours = [@puma, @fairlead].map { |port| Exchange.new(port, texts.map(&:b)).parts }
        differing(theirs, ours).map { |part| Difference.new(name, part, text(theirs[part]), text(ours[part])) }
      end
    end

    private

    def differing(theirs, ours)
      parts = (theirs.keys | ours.keys).reject { |part| text(theirs[part]) == text(ours[part]) }
      parts.intersect?(WHOLE) ? parts & [*WHOLE, "connection", "interim"] : parts
    end

    # Both texts in one encoding.
    def text(value) = value&.dup&.force_encoding(Encoding::UTF_8)&.scrub
  end
end
