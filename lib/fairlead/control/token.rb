# frozen_string_literal: true

module Fairlead
  module Control
    # The secret that lets a request steer the server, and the check of it. Without one, everybody who reaches the control
    # server may: but for web pages, whose requests browsers mark.
    class Token
      NONE = "none"

      # The words of browsers about requests that no page of another origin has made (Fetch Metadata).
      OWN = [nil, "none", "same-origin"].freeze

      # The text of the token; nil if there is none.
      attr_reader :text

      # +text+: nil for a new token, "none" for none.
      def initialize(text)
        require "digest"
        @text = text == NONE ? nil : (text || generate).b.freeze
      end

      # Whether the request has the token: as `?token=`, or as `authorization: Bearer`.
      def allows?(request)
        return OWN.include?(request["sec-fetch-site"]) unless @text

        given = request.parameters("token").flat_map { |text| [text, decode(text)] } + [bearer(request)]
        given.compact.any? { |text| same?(text) }
      end

      private

      def generate
        require "securerandom"
        SecureRandom.hex(16)
      end

      def decode(text) = text.gsub(/%\h\h/) { |escape| [escape.delete("%")].pack("H2") }

      def bearer(request) = request["authorization"].to_s[/\ABearer +(\S+)\z/i, 1]

      # Digests are of one length, and what they have in common tells nothing about the token: how long the comparison takes
      # does not either.
      def same?(given)
        given = Digest::SHA256.digest(given).bytes
        Digest::SHA256.digest(@text).bytes.zip(given).reduce(0) { |sum, (one, other)| sum | (one ^ other) }.zero?
      end
    end
  end
end
