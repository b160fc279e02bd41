# frozen_string_literal: true

require "test_helper"

begin
  require "pg"
rescue LoadError
  nil # a Ruby without it
end

class PostgresEnvelopeTest < Minitest::Test
  BYTES = ["", "x", "n\u00FC", "\0", "\xFF", "'\\\"", "t1 0 x", " ", "1 2"].map(&:b).freeze

  def setup
    skip "needs the gem pg" unless defined?(PG)

    @envelope = Fairlead::PubSub::Postgres::Envelope
  end

  def test_names_and_messages_come_back
    BYTES.product(BYTES, [true, false]) do |channel, message, unicode|
      payload = @envelope.pack(71, channel, message, unicode: unicode)
      assert payload.dup.force_encoding(Encoding::UTF_8).valid_encoding?
      refute_includes payload, "\0"
      assert payload.ascii_only? unless unicode
      content = @envelope.unpack(payload)
      assert_equal [channel, message, nil], [content.channel, content.message, content.id]
    end
  end

  def test_payloads_end_at_the_limit_of_postgres
    assert_equal 7_999, @envelope.pack(1, "", "x" * 7_994, unicode: true).bytesize
    assert_nil @envelope.pack(1, "", "x" * 7_995, unicode: true)
    assert_nil @envelope.pack(1, "", "\0" * 6_000, unicode: true)
  end

  def test_a_reference_names_a_row_and_the_length_of_the_name
    content = @envelope.unpack(@envelope.pack_reference(5, "n\u00FC".b, 12))

    assert_equal [12, 3], [content.id, content.name_bytes]
  end

  def test_other_texts_are_none
    ["", "x", "t", "t1", "t1 2", "t1 9 x", "b1 0 !", "b1 9 eA==", "r1 1 ", "r1 1 x", "T1 0 x", "t1 -1 x", "\xFF"].each do |payload|
      assert_nil @envelope.unpack(payload), payload.inspect
    end
  end

  def test_channels_of_postgres_are_short_and_different
    names = ["", "news", "News", "a b", "x" * 54, "x" * 55, "x" * 63, "x" * 5_000, "n\u00FC", "\0", "\xFF", "#x"].map(&:b)
    channels = names.map { |name| @envelope.channel(name, shared: false) }

    assert_equal channels.uniq, channels
    assert(channels.all? { |channel| channel.match?(/\A[ -~]{9,63}\z/) })
    assert_equal ["fairlead"], names.map { |name| @envelope.channel(name, shared: true) }.uniq
  end
end
