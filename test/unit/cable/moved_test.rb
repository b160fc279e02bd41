# frozen_string_literal: true

require "test_helper"

# The part of an Action Cable connection that moves to another process.
class CableMovedTest < Minitest::Test
  Moved = Fairlead::Cable::Moved

  # Written by the first version of Fairlead with this format. Every later version must read it.
  FORMAT1 = "01" \
            "0100000001#{"p".unpack1("H*")}" \
            "0400000003#{"a.1".unpack1("H*")}" \
            "0500000002#{"{}".unpack1("H*")}" \
            "0200000003#{"one".unpack1("H*")}" \
            "0200000003#{"two".unpack1("H*")}" \
            "0300000006#{"signed".unpack1("H*")}".freeze
  LEFT = "0600000003#{"2.5".unpack1("H*")}".freeze
  ALL = { protocol: "p", identifiers: %w[one two], signed: %w[signed], position: "a.1", session: "{}" }.freeze

  def test_the_first_format
    assert_equal ALL, parts(Moved.unpack([FORMAT1].pack("H*")))
    both = Moved.new(**ALL, left: 2.5).pack

    assert_equal FORMAT1.sub("0200", "#{LEFT}0200"), both.unpack1("H*")
    assert_equal 2.5, Moved.unpack(both).left
  end

  def test_parts_that_are_missing_and_text_of_any_script
    moved = Moved.unpack(Moved.new(protocol: nil, identifiers: ["{\"channel\":\"Rööm\"}"]).pack)

    assert_equal({ protocol: nil, identifiers: ["{\"channel\":\"Rööm\"}"], signed: [], position: nil, session: nil }, parts(moved))
  end

  def test_unknown_fields_are_skipped_and_unknown_formats_are_not_read
    bytes = Moved.new(**ALL).pack

    assert_equal ALL, parts(Moved.unpack(bytes + [77, 1, "x"].pack("CNa*")))
    assert_nil Moved.unpack("\x02#{bytes}")
  end

  private

  def parts(moved) = ALL.keys.to_h { |name| [name, moved.public_send(name)] }
end
