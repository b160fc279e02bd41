# frozen_string_literal: true

module Fairlead
  module Soak
    # Bytes that say whose they are: every kilobyte begins with the number of what it belongs to and its own place there. Client
    # and application make the same bytes of the same number; what has come from elsewhere is recognised by its mark.
    module Pattern
      # It holds another one's bytes.
      class Mixed < StandardError; end

      # It is not what was asked for.
      class Wrong < StandardError; end

      BLOCK = 1024
      MARK = /<(\h{12})\.\h{6}>/n
      MARK_BYTES = 21
      WORDS = %w[alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon].freeze
      FILLER = Random.new(9).then { |random| Array.new(12_000) { WORDS.sample(random: random) + random.rand(100).to_s }.join(" ").b.freeze }
      SPAN = FILLER.bytesize - BLOCK

      module_function

      # The first +size+ bytes of what belongs to +id+, a number below 2**48. There is no line end among them.
      def bytes(id, size)
        blocks = Array.new((size + BLOCK - 1) / BLOCK) { |place| block(id, place) }
        blocks.join.byteslice(0, size)
      end

      # Raises unless +bytes+ are those of +id+, all of them.
      def check(bytes, id, size, what = "body")
        expected = self.bytes(id, size)
        return if bytes == expected

        check_owner(bytes, id, what)
        raise Wrong, "#{what}: #{difference(bytes, expected)}"
      end

      # Raises where +bytes+ have a mark of somebody else.
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
