# frozen_string_literal: true

module Fairlead
  module Control
    # The secret that lets a request steer the server. The supervisor checks it.
    class Token
      NONE = Options::Types::Secret::NONE

      # The text of the token; nil if there is none.
      attr_reader :text

      # +text+: nil for a new token, "none" for none.
      def initialize(text)
        @text = text == NONE ? nil : (text || generate).b.freeze
      end

      private

      def generate
        require "securerandom"
        SecureRandom.hex(16)
      end
    end
  end
end
