# frozen_string_literal: true

module Fairlead
  module Handover
    # The state of a client's application: the name of its handler's class, the String of +on_handover+, and its request.
    class State
      # The format. This version reads no other.
      FORMAT = 1

      # Numbers of fields. A text is UTF-8 or binary; the value of an entry of the env follows its key.
      NAME = 1
      TEXT = 2
      BINARY = 3
      KEY = 4
      VALUE = 5

      # Returns nil if the format is unknown.
      def self.unpack(bytes)
        fields = Fields.unpack(FORMAT, bytes) or return
        found = fields.group_by(&:first).transform_values { |pairs| pairs.map(&:last) }
        text = found[TEXT]&.first&.force_encoding(Encoding::UTF_8) || found.fetch(BINARY).first
        new(found.fetch(NAME).first.force_encoding(Encoding::UTF_8), text, found.fetch(KEY, []).zip(found.fetch(VALUE, [])))
      end

      attr_reader :name, :text, :entries

      # +entries+: pairs of a key and a value of the env.
      def initialize(name, text, entries)
        @name = name
        @text = text
        @entries = entries
      end

      def pack
        is_text = [Encoding::UTF_8, Encoding::US_ASCII].include?(text.encoding)
        fields = [[NAME, name], [is_text ? TEXT : BINARY, text]]
        Fields.pack(FORMAT, fields + entries.flat_map { |key, value| [[KEY, key], [VALUE, value]] })
      end
    end
  end
end
