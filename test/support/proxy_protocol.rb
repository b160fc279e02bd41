# frozen_string_literal: true

module Fairlead
  module Test
    # Headers of HAProxy's PROXY protocol, as a proxy in front of a server sends them.
    module ProxyProtocol
      SIGNATURE = "\r\n\r\n\0\r\nQUIT\n".b.freeze
      LOCAL = "#{SIGNATURE}\x20\x00\x00\x00".b.freeze
      UNKNOWN = "PROXY UNKNOWN\r\n"
      CLIENT = "192.0.2.1"

      module_function

      # Version 1.
      def line(client = CLIENT) = "PROXY TCP#{client.include?(":") ? 6 : 4} #{client} #{client} 40000 443\r\n"

      # Version 2, with these TLVs behind the addresses.
      def block(*vectors, client: CLIENT)
        address = IPAddr.new(client)
        body = (address.hton * 2) + [40_000, 443].pack("n2") + vectors.join.b
        "#{SIGNATURE}\x21#{address.ipv6? ? "\x21" : "\x11"}".b + [body.bytesize].pack("n") + body
      end

      def vector(type, value) = [type, value.bytesize].pack("Cn") + value.b

      # Returns the TLV about the client's TLS. +certificate+: DER. +verification+: 0 if it is valid.
      def tls(version: "TLSv1.3", cipher: "AES", name: nil, certificate: nil, verification: 0)
        bits = name || certificate ? 7 : 1
        inner = { 0x21 => version, 0x23 => cipher, 0x22 => name, 0x28 => certificate }.compact.map { |type, value| vector(type, value) }
        vector(0x20, [bits, verification].pack("CN") + inner.join)
      end

      # Returns the header with its checksum.
      def with_checksum(header)
        header += vector(0x03, "\0" * 4)
        header[14, 2] = [header.bytesize - 16].pack("n")
        header[-4, 4] = [crc32c(header)].pack("N")
        header
      end

      def crc32c(bytes)
        sum = bytes.each_byte.reduce(0xffff_ffff) do |rest, byte|
          8.times.reduce(rest ^ byte) { |bits, _| bits.odd? ? (bits >> 1) ^ 0x82f6_3b78 : bits >> 1 }
        end
        sum ^ 0xffff_ffff
      end
    end
  end
end
