# frozen_string_literal: true

module Fairlead
  module Test
    # Parses the body of a multipart/byteranges response (RFC 9110 §14.6, RFC 2046 §5.1.1) strictly: every part is as long as
    # its content-range says, and there is nothing before, between and behind the parts.
    class ByteRanges
      class Malformed < StandardError; end

      # +type+: the content-type. +from+, +to+: positions of the first and the last byte. +whole+: the size of the file.
      Part = Struct.new(:type, :from, :to, :whole, :text)

      TYPE = %r{\Amultipart/byteranges; ?boundary=("?)([0-9A-Za-z'()+_,./:=?-]{1,70})\1\z}
      RANGE = %r{\Abytes (\d+)-(\d+)/(\d+)\z}

      def self.parts(answer) = new(answer["content-type"], answer.body).parts

      def initialize(type, body)
        @boundary = TYPE.match(type.to_s)&.[](2) or raise Malformed, "content-type: #{type}"
        @body = body
        @at = 0
      end

      # Returns the parts in order.
      def parts
        take("\r\n") if @body.start_with?("\r\n--")
        take("--#{@boundary}")
        parts = []
        parts << part until ending?
        take("--")
        take("\r\n") if @at < @body.bytesize
        raise Malformed, "#{@body.bytesize - @at} bytes behind the last part" if @at < @body.bytesize

        parts
      end

      private

      def ending? = @body.byteslice(@at, 2) == "--"

      def part
        take("\r\n")
        fields = head
        from, to, whole = RANGE.match(fields["content-range"])&.captures&.map { |text| Integer(text, 10) }
        raise Malformed, "content-range: #{fields["content-range"]}" unless from && from <= to && to < whole

        text = @body.byteslice(@at, to - from + 1)
        @at += text.bytesize
        take("\r\n--#{@boundary}")
        Part.new(fields["content-type"], from, to, whole, text)
      end

      def head
        ending = @body.index("\r\n\r\n", @at) or raise Malformed, "the head of a part does not end"
        lines = @body[@at...ending].split("\r\n")
        @at = ending + 4
        fields = lines.to_h { |line| line.match(/\A([a-z-]+): (.*)\z/i)&.captures or raise Malformed, line.inspect }
        raise Malformed, lines.inspect unless fields.size == lines.size

        fields.transform_keys(&:downcase)
      end

      def take(text)
        found = @body.byteslice(@at, text.bytesize)
        raise Malformed, "#{text.inspect} expected at #{@at}, not #{found.inspect}" unless found == text

        @at += text.bytesize
      end
    end
  end
end
