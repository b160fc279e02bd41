# frozen_string_literal: true

module Fairlead
  # Paths, and other texts from the system: arguments, variables. They are bytes. Ruby treats them as text in the encoding of
  # the locale, where they are often invalid, because services run without a locale.
  module SystemText
    # The reason why a path that begins with `~` has no absolute path.
    HOMELESS = "names no home folder that is known; give the whole path"

    class << self
      # The same bytes as UTF-8 if they are valid UTF-8, in any locale, and as binary otherwise.
      def decode(text)
        utf8 = text.dup.force_encoding(Encoding::UTF_8)
        utf8.valid_encoding? ? utf8 : utf8.force_encoding(Encoding::BINARY)
      end

      # For messages: bytes that are not UTF-8 are escaped.
      def shown(text)
        text.to_s.dup.force_encoding(Encoding::UTF_8).scrub { |bytes| bytes.unpack("C*").map { |byte| format("\\x%02X", byte) }.join }
      end

      # The same, as a part of a line: control characters are escaped, too.
      def in_line(text) = shown(text).gsub(/[[:cntrl:]]/) { |character| character.bytes.map { |byte| format("\\x%02X", byte) }.join }

      # The current folder.
      def current = decode(Dir.pwd)

      # The absolute path of +path+, which begins at +folder+ if it is relative. Raises ArgumentError if it begins at an unknown
      # home folder.
      def absolute(path, folder = Dir.pwd) = decode(File.expand_path(path.b, folder.b))

      # The pairs of a query. Bytes that should have been escaped are taken as they are.
      def query(text)
        require "uri"
        escaped = text.b.gsub(/[^\x00-\x7f]/n) { |byte| format("%%%02X", byte.ord) }
        URI.decode_www_form(escaped, Encoding::BINARY).map { |pair| pair.map { |part| decode(part) } }
      end
    end
  end
end
