# frozen_string_literal: true

module Fairlead
  module Acme
    # The reason why there is no certificate: the authority's message, or the reason why the authority cannot be asked. Messages
    # of an authority are untrusted: they are cut, and nothing in them controls a terminal.
    class Problem < Error
      # The longest type and message, in characters.
      TYPE_MOST = 60
      MESSAGE_MOST = 600

      # Characters that do not show as themselves on a terminal or in a line of a log.
      UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/
      private_constant :UNPRINTABLE

      # +text+ as one short line.
      def self.plain(text, most = MESSAGE_MOST)
        text = text.to_s.byteslice(0, most * 8).dup.force_encoding(Encoding::UTF_8).scrub("?")
        text = text.gsub(/\s+/, " ").strip.gsub(UNPRINTABLE, "?")
        text.length > most ? "#{text[0, most - 1]}…" : text
      end

      # The last part of the error's name in RFC 8555 §6.7 ("rateLimited"), or a word of ours.
      attr_reader :type

      # Seconds that the authority wants us to wait; nil if it has not said.
      attr_reader :retry_after

      def initialize(type, message, retry_after: nil)
        @type = Problem.plain(type, TYPE_MOST)
        @retry_after = (retry_after if retry_after.is_a?(Numeric) && retry_after.positive?)
        super(Problem.plain(message))
      end
    end
  end
end
