# frozen_string_literal: true

require "test_helper"
require "socket"

class LinkTest < Minitest::Test
  def setup
    @ours, @theirs = Fairlead::Link.pair
  end

  def teardown
    [@ours, @theirs].each(&:close)
  end

  def test_messages_keep_their_order_and_their_fields
    assert @ours.send(:fork, 3, "é b\nc")
    assert @ours.send(:end)
    first, second = @theirs.messages

    assert_equal [:fork, ["3", "é b\nc"], 3], [first.kind, first.fields, first.number]
    assert_equal [:end, []], [second.kind, second.fields]
    assert_nil @theirs.receive
  end

  def test_descriptors_travel_with_a_message_and_no_child_inherits_them
    reader, writer = IO.pipe
    @ours.send(:fork, ios: [writer, reader.fileno])
    writer.close
    got, copy = @theirs.receive.ios
    got.write("hello")
    got.close

    assert_predicate copy, :close_on_exec?
    assert_equal "hello", reader.read
  end

  def test_the_last_words_are_read_of_one_that_has_not_read_everything
    @ours.send(:end)
    @theirs.send(:failed, "no such file")
    @theirs.close

    assert_equal %i[failed gone], @ours.messages.map(&:kind)
  end

  def test_the_end_of_the_other_one_is_read_after_what_it_has_said
    @theirs.send(:failed, "no such file")
    @theirs.close

    assert_equal %i[failed gone], @ours.messages.map(&:kind)
    refute @ours.send(:end)
  end

  def test_a_message_waits_for_room
    nil while @ours.send(:alive, "x" * 1000)
    reader = Thread.new { Thread.pass until @theirs.messages.map(&:kind).include?(:last) }

    assert @ours.send_soon(:last)
    assert reader.join(5)
  end

  def test_a_message_does_not_wait_for_a_closed_link
    @ours.close

    refute @ours.send_soon(:last)
  end

  def test_a_text_of_any_length_and_encoding_is_one_message
    @ours.send(:failed, "é" * 50_000)
    @ours.send(:failed, "\xFF\0x")
    long, odd = @theirs.messages.map { |message| message.fields.first }

    assert_operator long.bytesize, :<=, 4003
    assert_equal ["\xFFx".b, true], [odd, long.valid_encoding?]
  end

  def test_one_that_takes_nothing_more_is_like_one_that_is_gone
    results = Array.new(2000) { @ours.send(:backtraces, "x" * 1000) }

    assert_equal [true, false], results.uniq
  end

  # As on systems whose sockets do not keep messages apart.
  class StreamTest < LinkTest
    def setup
      @ours, @theirs = UNIXSocket.pair(:STREAM).map { |socket| Fairlead::Link.new(socket) }
    end

    def test_a_message_that_arrives_in_parts_is_whole
      text = %w[fork 3].join("\0")
      whole = "#{[text.bytesize].pack("L")}#{text}"
      whole.each_char { |byte| @ours.to_io.write(byte) }

      assert_equal ["3"], @theirs.receive.fields
    end

    def test_a_message_of_which_the_system_takes_a_part_ends_the_link_at_once
      @ours.to_io.setsockopt(:SOCKET, :SNDBUF, 1)

      assert @ours.send(:alive)
      refute @ours.send(:fork, *(["x" * 4000] * 10))
      assert_equal %i[alive gone], @theirs.messages.map(&:kind)
      refute @ours.send(:end)
    end

    def test_the_end_in_the_middle_of_a_message_is_the_end
      @ours.to_io.write("#{[10].pack("L")}fork")
      @ours.close

      assert_equal [:gone], @theirs.messages.map(&:kind)
    end
  end
end
