# frozen_string_literal: true

require "zlib"

module Fairlead
  module Test
    class WebSocket
      # permessage-deflate (RFC 7692) as negotiated: one side compresses, the other decompresses.
      class Deflate
        TAIL = "\x00\x00\xFF\xFF".b.freeze

        # Parameters that a server may send in its response.
        PARAMETERS = /\A(?:(server|client)_no_context_takeover|(?:server|client)_max_window_bits=(?:[89]|1[0-5]))\z/

        attr_reader :parameters

        # Number of compressed messages, and their size on the wire.
        attr_reader :decompressed, :compressed_bytes

        # +answer+: the server's Sec-WebSocket-Extensions. +offer+: the client's.
        def initialize(answer, offer)
          name, *@parameters = answer.split(";").map(&:strip)
          raise Malformed, "extension #{name}" unless name == "permessage-deflate"

          wrong = @parameters.grep_v(PARAMETERS) + (@parameters.grep(/\Aclient_max/) unless offer.include?("client_max_window_bits")).to_a
          raise Malformed, "parameters #{wrong.join(", ")}" if wrong.any? || @parameters.uniq { |one| one[/\w+/] } != @parameters

          @decompressed = @compressed_bytes = 0
        end

        def compress(data)
          @deflate = nil if @parameters.include?("client_no_context_takeover")
          @deflate ||= Zlib::Deflate.new(Zlib::DEFAULT_COMPRESSION, -[window_bits("client"), 9].max)
          @deflate.deflate(data.b, Zlib::SYNC_FLUSH).delete_suffix(TAIL)
        end

        def decompress(data)
          @decompressed += 1
          @compressed_bytes += data.bytesize
          @inflate = nil if @parameters.include?("server_no_context_takeover") || @inflate&.finished?
          @inflate ||= Zlib::Inflate.new(-[window_bits("server"), 9].max)
          @inflate.inflate(data) + @inflate.inflate(TAIL)
        rescue Zlib::Error => e
          raise Malformed, "compressed data: #{e.message}"
        end

        private

        def window_bits(side)
          bits = @parameters.filter_map { |parameter| parameter[/\A#{side}_max_window_bits=(\d+)/, 1] }.first
          bits ? Integer(bits, 10) : 15
        end
      end
    end
  end
end
