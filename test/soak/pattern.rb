# frozen_string_literal: true

module Fairlead
  module Soak
    # Bytes that identify their owner: every kilobyte begins with the owner's number and its own position. Client and
    # application make the same bytes from the same number; the marks expose bytes from elsewhere.
    module Pattern
      # It contains another owner's bytes.
      class Mixed < StandardError; end

      # It differs from the requested bytes.
      class Wrong < StandardError; end

      BLOCK = 1024
      MARK = /<(\h{12})\.\h{6}>/n
      MARK_BYTES = 21
      WORDS = %w[alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon].freeze
      FILLER = Random.new(9).then { |random| Array.new(12_000) { WORDS.sample(random: random) + random.rand(100).to_s }.join(" ").b.freeze }
      SPAN = FILLER.bytesize - BLOCK

      module_function

      # Returns the first +size+ bytes for +id+, a number below 2**48. They contain no line end.
      def bytes(id, size)
        blocks = Array.new((size + BLOCK - 1) / BLOCK) { |place| block(id, place) }
        blocks.join.byteslice(0, size)
      end

      # Raises unless +bytes+ are exactly the bytes for +id+.
      def check(bytes, id, size, what = "body")
        expected = self.bytes(id, size)
        return if bytes == expected

        check_owner(bytes, id, what)
        raise Wrong, "#{what}: #{difference(bytes, expected)}"
      end

      # Raises if +bytes+ contain a mark of another owner.
      def check_owner(bytes, id, what = "body")
        others = bytes.b.scan(MARK).flatten.map { |mark| mark.to_i(16) }.uniq - [id]
        return if others.empty?

        raise Mixed, "#{what} of #{format("%x", id)} holds bytes of #{others.map { |other| format("%x", other) }.join(", ")}"
      end

      def block(id, place)
        format("<%012x.%06x>", id, place) << FILLER.byteslice(((id * 7) + (place * 13)) % SPAN, BLOCK - MARK_BYTES)
      end

      def difference(bytes, expected)
        at = (0...[bytes.bytesize, expected.bytesize].min).find { |index| bytes.getbyte(index) != expected.getbyte(index) }
        return "#{bytes.bytesize} bytes instead of #{expected.bytesize}" unless at

        "differs at #{at}: #{bytes.byteslice(at, 60).inspect} instead of #{expected.byteslice(at, 60).inspect}"
      end
    end
  end
end
