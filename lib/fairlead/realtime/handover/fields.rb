# frozen_string_literal: true

module Fairlead
  module Handover
    # The form of everything that one process hands to another, which may run another version of Fairlead: the number of the format, and
    # fields. A field has a number, a length and bytes. Readers skip the numbers that they do not know.
    module Fields
      # A field's number and its length.
      HEAD = "CN"
      HEAD_BYTES = 5

      # The bytes are not fields.
      class Malformed < StandardError; end

      class << self
        # +fields+: pairs of a number and a String.
        def pack(format, fields)
          fields.each_with_object([format].pack("C")) { |(number, text), all| all << [number, text.bytesize].pack(HEAD) << text.b }
        end

        # Returns pairs of a number and a binary String; nil if the format is another one.
        def unpack(format, bytes)
          return unless bytes.getbyte(0) == format

          fields = []
          at = 1
          while at < bytes.bytesize
            number, size = head(bytes, at)
            at += HEAD_BYTES + size
            fields << [number, bytes.byteslice(at - size, size).b]
          end
          fields
        end

        private

        def head(bytes, at)
          number, size = bytes.byteslice(at, HEAD_BYTES).unpack(HEAD)
          raise Malformed, "a field ends too early" unless size && at + HEAD_BYTES + size <= bytes.bytesize

          [number, size]
        end
      end
    end
  end
end
