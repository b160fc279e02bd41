# frozen_string_literal: true

require "test_helper"

class HandoverFieldsTest < Minitest::Test
  Fields = Fairlead::Handover::Fields

  def test_numbers_and_bytes_come_back
    fields = [[1, "Chat"], [255, ""], [1, (0..255).map(&:chr).join.b], [7, "grün"]]

    assert_equal fields.map { |number, text| [number, text.b] }, Fields.unpack(9, Fields.pack(9, fields))
    assert_equal [Encoding::BINARY], Fields.unpack(9, Fields.pack(9, fields)).map { |_, text| text.encoding }.uniq
    assert_equal [], Fields.unpack(9, Fields.pack(9, []))
  end

  def test_another_format_is_not_read
    assert_nil Fields.unpack(2, Fields.pack(1, [[1, "x"]]))
    assert_nil Fields.unpack(1, "")
  end

  def test_a_part_of_the_bytes_is_refused
    bytes = Fields.pack(1, [[1, "one"], [2, "two"]])
    whole = [1, 1 + 5 + 3, bytes.bytesize] # between two fields

    (1..bytes.bytesize).each do |size|
      part = bytes.byteslice(0, size)
      whole.include?(size) ? Fields.unpack(1, part) : assert_raises(Fields::Malformed, size) { Fields.unpack(1, part) }
    end
  end
end
