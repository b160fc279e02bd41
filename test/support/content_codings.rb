# frozen_string_literal: true

require "open3"
require "zlib"

module Fairlead
  module Test
    # Decodes a server's encodings with independent code: gzip with Ruby's zlib, Brotli with Node.js, Zstandard with the
    # `zstd` command.
    module ContentCodings
      class Undecodable < StandardError; end

      COMMANDS = {
        "br" => ["node", "-e", <<~JS],
          const zlib = require("zlib");
          const finishFlush = zlib.constants[process.env.BEGINNING ? "BROTLI_OPERATION_FLUSH" : "BROTLI_OPERATION_FINISH"];
          const input = require("fs").readFileSync(0);
          const { buffer, engine } = zlib.brotliDecompressSync(input, { info: true, finishFlush });
          if (engine.bytesWritten < input.length) throw new Error("bytes behind the end");
          process.stdout.write(buffer);
        JS
        "zstd" => %w[zstd --decompress --quiet --stdout]
      }.freeze

      module_function

      # Returns true if the tool for +coding+ is installed.
      def decodable?(coding)
        coding == "gzip" || ENV.fetch("PATH").split(":").any? { |folder| File.executable?(File.join(folder, COMMANDS.fetch(coding).first)) }
      end

      # Decodes +bytes+, which must be complete and without anything behind their end.
      def decode(coding, bytes)
        return gunzip(bytes) if coding == "gzip"

        text, errors, status = pipe(coding, bytes)
        status.success? && errors.empty? ? text : raise(Undecodable, "#{coding}: #{errors}")
      end

      # Decodes the beginning of a longer body, as far as +bytes+ go.
      def decode_beginning(coding, bytes)
        return inflater.inflate(bytes) if coding == "gzip"

        pipe(coding, bytes, "BEGINNING" => "1").first
      end

      def gunzip(bytes)
        zlib = inflater
        text = zlib.inflate(bytes)
        raise Undecodable, "gzip: not at its end" unless zlib.finished?
        raise Undecodable, "gzip: #{bytes.bytesize - zlib.total_in} bytes behind its end" unless zlib.total_in == bytes.bytesize

        text
      end

      # Returns an inflater for gzip only.
      def inflater = Zlib::Inflate.new(Zlib::MAX_WBITS + 16)

      def pipe(coding, bytes, environment = {})
        Open3.capture3(environment, *COMMANDS.fetch(coding), stdin_data: bytes, binmode: true)
      end
    end
  end
end
