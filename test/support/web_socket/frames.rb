# frozen_string_literal: true

module Fairlead
  module Test
    class WebSocket
      # Frames of RFC 6455 §5: builds a client's frames, broken ones too, and parses a server's frames.
      class Frames
        TYPES = { 1 => :text, 2 => :binary, 8 => :close, 9 => :ping, 10 => :pong }.freeze

        # Codes that a close frame may contain (RFC 6455 §7.4, IANA's registry).
        CLOSE_CODES = [1000..1003, 1007..1014, 3000..4999].freeze

        class << self
          def build(opcode, data, fin: true, rsv: 0, masked: true, length: nil)
            data = data.b
            head = [(fin ? 0x80 : 0) | (rsv << 4) | opcode].pack("C") + length_field(length || data.bytesize, masked ? 0x80 : 0)
            return head + data unless masked

            key = Random.bytes(4)
            head + key + mask(data, key)
          end

          def mask(data, key)
            whole = key.unpack1("N")
            words = (data + ("\0" * (-data.bytesize % 4))).unpack("N*")
            words.map { |word| word ^ whole }.pack("N*").byteslice(0, data.bytesize)
          end

          # Returns [code, reason]; the code is nil if the frame is empty.
          def parse_close(data)
            return [nil, ""] if data.empty?

            code, reason = data.unpack("na*")
            reason = reason&.dup&.force_encoding("UTF-8")
            raise Malformed, "a close frame of one byte" if code.nil?
            raise Malformed, "close code #{code}" unless CLOSE_CODES.any? { |range| range.cover?(code) }
            raise Malformed, "a reason that is not UTF-8: #{reason.inspect}" unless reason.valid_encoding?

            [code, reason]
          end

          private

          def length_field(length, mask_bit)
            case length
            when 0..125 then [mask_bit | length].pack("C")
            when 126..0xffff then [mask_bit | 126, length].pack("Cn")
            else [mask_bit | 127, length].pack("CQ>")
            end
          end
        end

        # +deflate+: the negotiated compression, or nil.
        def initialize(deflate)
          @deflate = deflate
          @received = "".b
          @at = 0
          @fragments = nil
        end

        def <<(bytes)
          @received << bytes
          self
        end

        # Returns the next complete message or control frame, as [type, String]; nil if there is none.
        def shift
          while (head, data = next_frame)
            message = head.nobits?(0x08) ? join(head, data) : control(head, data)
            return message if message
          end
        end

        private

        # Returns the first byte and the data of the next frame; nil if it is incomplete.
        def next_frame
          second = @received.getbyte(@at + 1) or return forget_what_is_read
          raise Malformed, "a masked frame" if second > 127

          start, length = extent(second)
          return forget_what_is_read if start.nil? || @received.bytesize < start + length

          head = @received.getbyte(@at)
          raise Malformed, "reserved bits #{head.to_s(2)}" if head.anybits?(0x30)

          @at = start + length
          [head, @received.byteslice(start, length)]
        end

        # Returns the offset and the length of the data; nil if the length is incomplete. It must be in its shortest form.
        def extent(second)
          return [@at + 2, second] if second < 126

          bytes = second == 126 ? 2 : 8
          field = @received.byteslice(@at + 2, bytes)
          return if field.bytesize < bytes

          length = field.unpack1(bytes == 2 ? "n" : "Q>")
          raise Malformed, "length #{length} in #{bytes} bytes" if length < (bytes == 2 ? 126 : 1 << 16) || length >= 1 << 63

          [@at + 2 + bytes, length]
        end

        def forget_what_is_read
          @received = @received.byteslice(@at..)
          @at = 0
          nil
        end

        def control(head, data)
          type = TYPES[head & 0x0f] or raise Malformed, "opcode #{head & 0x0f}"
          raise Malformed, "a #{type} in fragments" if head < 0x80
          raise Malformed, "a #{type} of #{data.bytesize} bytes" if data.bytesize > 125
          raise Malformed, "a compressed #{type}" if head.anybits?(0x40)

          [type, data]
        end

        def join(head, data)
          opcode = head & 0x0f
          compressed = head.anybits?(0x40)
          check_order(opcode, compressed)
          @fragments ||= [opcode, compressed, "".b]
          @fragments.last << data
          return if head < 0x80

          whole = @fragments
          @fragments = nil
          finish(*whole)
        end

        def check_order(opcode, compressed)
          raise Malformed, "opcode #{opcode}" if opcode > 2
          raise Malformed, "a continuation of nothing" if opcode.zero? && @fragments.nil?
          raise Malformed, "a new message in another" if opcode.positive? && @fragments
          raise Malformed, "a compressed continuation" if opcode.zero? && compressed
        end

        # Returns [type, String] of a complete message.
        def finish(opcode, compressed, data)
          raise Malformed, "compressed without an agreement" if compressed && @deflate.nil?

          data = @deflate.decompress(data) if compressed
          data.force_encoding("UTF-8") if opcode == 1
          raise Malformed, "a text that is not UTF-8" unless data.valid_encoding?

          [TYPES[opcode], data]
        end
      end
    end
  end
end
