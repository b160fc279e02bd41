# frozen_string_literal: true

require "digest/sha1"
require "securerandom"

module Fairlead
  module Test
    class WebSocket
      # The opening handshake of RFC 6455 §4: a client's request, and a strict check of the response.
      class Handshake
        GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        OFFER = "permessage-deflate; client_max_window_bits"

        # Fields of a WebSocket request, for clients of another kind.
        FIELDS = {
          "upgrade" => "websocket", "connection" => "Upgrade", "sec-websocket-version" => "13",
          "sec-websocket-key" => "dGhlIHNhbXBsZSBub25jZQ=="
        }.freeze

        def initialize(path, headers:, protocols:, deflate:)
          @path = path
          @headers = headers
          @protocols = protocols
          @offer = deflate == true ? OFFER : deflate || nil
          @key = SecureRandom.base64(16)
        end

        def request
          fields = { "host" => "localhost" }.merge(FIELDS, "sec-websocket-key" => @key)
          fields["sec-websocket-protocol"] = @protocols.join(", ") if @protocols.any?
          fields["sec-websocket-extensions"] = @offer if @offer
          lines = fields.merge(@headers).map { |name, value| "#{name}: #{value}\r\n" }
          "GET #{@path} HTTP/1.1\r\n#{lines.join}\r\n"
        end

        # Returns the fields of a 101 response, as pairs of name and value in order.
        def check(head)
          fields = head.split("\r\n").drop(1).map { |line| parse(line) }
          expect(fields, "upgrade", "websocket")
          expect(fields, "connection", "upgrade")
          expect(fields, "sec-websocket-accept", [Digest::SHA1.digest(@key + GUID)].pack("m0"))
          %w[content-length transfer-encoding].each { |name| raise Malformed, head if fields.assoc(name) }
          protocol = fields.assoc("sec-websocket-protocol")&.last
          raise Malformed, "protocol #{protocol}" unless protocol.nil? || @protocols.include?(protocol)

          fields
        end

        # Returns the compression that this Sec-WebSocket-Extensions has accepted; nil for none.
        def agreed(extensions)
          return if extensions.nil?
          raise Malformed, "an extension that was not offered: #{extensions}" unless @offer

          Deflate.new(extensions, @offer)
        end

        private

        def parse(line)
          field = /\A([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([^\r\n\0]*)\z/n.match(line.b) or raise Malformed, line.inspect
          [field[1].downcase, field[2]]
        end

        # RFC 6455 §4.2.2 compares the first two without regard to case, and the last one exactly.
        def expect(fields, name, value)
          values = fields.select { |field, _| field == name }.map(&:last)
          values = values.map(&:downcase) unless name == "sec-websocket-accept"
          raise Malformed, "#{name}: #{values.join(", ")}" unless values == [value]
        end
      end
    end
  end
end
