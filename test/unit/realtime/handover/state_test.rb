# frozen_string_literal: true

require "test_helper"

class HandoverStateTest < Minitest::Test
  State = Fairlead::Handover::State

  # Written by the first version of Fairlead with this format. Every later version must read it.
  FORMAT1 = ["01", "01", "0000000a", "Chat::Room".unpack1("H*"), "02", "00000005", "gr\u00FCn".unpack1("H*"),
             "04", "0000000e", "REQUEST_METHOD".unpack1("H*"), "05", "00000003", "GET".unpack1("H*")].join

  def test_everything_comes_back
    ["", "grün", "\xFF\x00".b, "ascii".encode("US-ASCII")].each do |text|
      state = State.unpack(State.new("Chat", text, [["PATH_INFO", "/\xE9".b], ["HTTP_HOST", ""]]).pack)

      assert_equal ["Chat", text, [["PATH_INFO", "/\xE9".b], ["HTTP_HOST", ""]]], [state.name, state.text, state.entries]
      assert_equal text.encoding == Encoding::BINARY ? Encoding::BINARY : Encoding::UTF_8, state.text.encoding
    end
  end

  def test_text_of_another_encoding_arrives_as_its_bytes
    state = State.unpack(State.new("Chat", "\xFC".dup.force_encoding("ISO-8859-1"), []).pack)

    assert_equal "\xFC".b, state.text
  end

  def test_the_first_format
    state = State.unpack([FORMAT1].pack("H*"))

    assert_equal ["Chat::Room", "grün", [%w[REQUEST_METHOD GET]]], [state.name, state.text, state.entries]
    assert_equal FORMAT1, State.new("Chat::Room", "grün", [%w[REQUEST_METHOD GET]]).pack.unpack1("H*")
  end

  def test_unknown_fields_are_skipped_and_unknown_formats_are_not_read
    known = State.new("Chat", "x", [%w[A 1]]).pack

    assert_equal "x", State.unpack(known + [99, 3, "new"].pack("CNa*")).text
    assert_nil State.unpack("\x02#{known[1..]}")
  end
end
