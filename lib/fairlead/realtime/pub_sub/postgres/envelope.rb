# frozen_string_literal: true

require "digest"

module Fairlead
  module PubSub
    class Postgres
      # The text of a notification: a letter, a serial number, the length of the name, and the body. The number makes payloads
      # different, because PostgreSQL sends equal ones of a transaction once. The body is the name and the message; as text (t), in
      # base64 (b) if they are not text, or the id of a row that has them (r).
      module Envelope
        # Most bytes in a payload and in the name of a channel.
        MOST_BYTES = 7_999
        MOST_NAME_BYTES = 63

        PREFIX = "fairlead:"
        PLAIN_NAME = /\A[\x20-\x7e]{0,#{MOST_NAME_BYTES - PREFIX.size}}\z/n
        FORM = /\A([tbr])[0-9a-z]+ (\d+) (.*)\z/m

        # The parsed payload. +id+: of the row; otherwise +channel+ and +message+.
        Content = Struct.new(:channel, :message, :id, :name_bytes)

        class << self
          # PostgreSQL's channel for one of ours. +shared+: all have the same.
          def channel(name, shared:)
            return "fairlead" if shared

            PLAIN_NAME.match?(name) ? "#{PREFIX}#{name}" : "fairlead##{Digest::SHA256.hexdigest(name)[0, 48]}"
          end

          # The payload, or nil if it would be too long.
          def pack(serial, channel, message, unicode:)
            body = (channel + message.b).force_encoding(Encoding::UTF_8)
            is_text = !body.include?("\0") && (body.ascii_only? || (unicode && body.valid_encoding?))
            payload = "#{is_text ? "t" : "b"}#{serial.to_s(36)} #{channel.bytesize} #{is_text ? body : [body].pack("m0")}"
            payload if payload.bytesize <= MOST_BYTES
          end

          def pack_reference(serial, channel, id) = "r#{serial.to_s(36)} #{channel.bytesize} #{id}"

          # Returns nil for a payload of another program.
          def unpack(payload)
            kind, size, body = payload.b.match(FORM)&.captures
            return unless kind

            bytes = Integer(size, 10)
            case kind
            when "t" then content(bytes, body)
            when "b" then content(bytes, body.unpack1("m0"))
            when "r" then Content.new(nil, nil, Integer(body, 10), bytes)
            end
          rescue ArgumentError
            nil
          end

          # The content of a body, or of a row.
          def content(name_bytes, body)
            Content.new(body.byteslice(0, name_bytes), body.byteslice(name_bytes..)) if name_bytes <= body.bytesize
          end
        end
      end
    end
  end
end
