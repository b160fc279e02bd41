# frozen_string_literal: true

module Fairlead
  module Control
    # The secret that lets a request steer the server, and the check of it. Without a secret, everybody who reaches the control server may,
    # except web pages: browsers mark their requests, and name the host of the page.
    class Token
      NONE = Options::Types::Secret::NONE

      # The words of browsers about requests that no page of another origin has made (Fetch Metadata).
      OWN = [nil, "none", "same-origin"].freeze

      # Values of `token` that are looked at in one request.
      GUESSES = 4

      # A page of any name can have this name lead to an address of this machine (DNS rebinding). No name leads to what is an address
      # itself.
      ADDRESS = /\A(?:\[[\h:.]+\]|\d{1,3}(?:\.\d{1,3}){3})\z/

      # The text of the token; nil if there is none.
      attr_reader :text

      # +text+: nil for a new token, "none" for none. +url+: the address of the control server.
      def initialize(text, url: nil)
        require "digest"
        @text = text == NONE ? nil : (text || generate).b.freeze
        @digest = Digest::SHA256.digest(@text).bytes if @text
        @host = url.to_s[%r{\Atcp://([^/?]*?)(?::\d+)?(?:[/?]|\z)}, 1]
      end

      # Whether the request has the token: as `?token=`, or as `authorization: Bearer`.
      def allows?(request)
        return OWN.include?(request["sec-fetch-site"]) && own_host?(request["host"]) unless @text

        given = request.parameters("token").first(GUESSES).flat_map { |text| [text, decode(text)] } + [bearer(request)]
        given.compact.any? { |text| same?(text) }
      end

      # For a request that is not allowed; the first text is Puma's.
      def refusal = @text ? "Invalid auth token" : "The request comes from a web page, or is for another host"

      private

      def generate
        require "securerandom"
        SecureRandom.hex(16)
      end

      # Programs without a browser need not send one. At a Unix socket it means nothing, and browsers cannot reach one.
      def own_host?(field)
        return true unless @host && field

        host = field.downcase.sub(/:\d*\z/, "").delete_suffix(".")
        host == "localhost" || host == @host.downcase || ADDRESS.match?(host)
      end

      def decode(text) = text.gsub(/%\h\h/) { |escape| [escape.delete("%")].pack("H2") }

      def bearer(request) = request["authorization"].to_s[/\ABearer +(\S+)\z/i, 1]

      # Digests are of one length, and what they have in common tells nothing about the token: how long the comparison takes
      # does not either.
      def same?(given)
        given = Digest::SHA256.digest(given).bytes
        @digest.zip(given).reduce(0) { |sum, (one, other)| sum | (one ^ other) }.zero?
      end
    end
  end
end
