# frozen_string_literal: true

require "test_helper"
require "etc"
require "pathname"

class OptionTypesTest < Minitest::Test
  Types = Fairlead::Options::Types

  def test_a_count_is_a_whole_number_within_its_range
    count = Types::Count.new(1..10)

    assert_equal 10, count.parse("10")
    assert_equal 8, count.parse("08"), "a leading zero does not make it octal"
    refused count, 0, 11, "0", "1.0", 1.0, "ten", "", :one, true
  end

  def test_a_limit_may_be_infinite_which_means_none
    limit = Types::Limit.new(0..10)

    assert_equal [0, 0, 3], [Float::INFINITY, 0, "3"].map { |value| limit.parse(value) }
    refused limit, -1, 11, -Float::INFINITY, 1.5
  end

  def test_workers_may_be_as_many_as_there_are_processors
    workers = Types::Workers.new(0..1000)

    assert_equal Fairlead::Options::Processors.available, workers.parse(:auto)
    assert_equal Fairlead::Options::Processors.available, workers.parse("auto")
    assert_equal 0, workers.parse("0")
    refused workers, -1, 1001, "automatic"
  end

  def test_there_are_no_more_workers_than_there_can_be_however_many_processors_there_are
    assert_equal 1, Types::Workers.new(0..1).parse("auto")
  end

  def test_seconds_may_be_a_fraction_and_reach_the_engine_as_a_float
    seconds = Types::Seconds.new

    assert_equal 0.5, seconds.parse("0.5")
    assert_equal 30, seconds.parse(30)
    assert_instance_of Float, seconds.to_engine(30)
    refused seconds, 0, -1, Float::NAN, Float::INFINITY, "soon", "1s", 10**9
  end

  def test_no_time_at_all_is_allowed_where_it_has_a_meaning
    assert_equal 0, Types::Seconds.new(zero: true).parse("0")
    refused Types::Seconds.new(zero: true), -0.1
  end

  def test_a_time_slice_is_none_or_not_shorter_than_a_tick
    slice = Types::TimeSlice.new

    assert_equal [0, 0.001, 1, 0.02], ["0", "0.001", 1, 0.02].map { |value| slice.parse(value) }
    refused slice, 0.0009
    refused slice, 1.1
    refused slice, -0.005
  end

  def test_bytes_may_have_a_suffix
    bytes = Types::Bytes.new

    assert_equal 65_536, bytes.parse("64k")
    assert_equal 10 * 1024**2, bytes.parse("10M")
    assert_equal 500, bytes.parse("500")
    refused bytes, "64kb", "k", "-1", "1.5m", 1.5, ""
  end

  def test_bytes_are_shown_with_the_largest_suffix_that_loses_nothing
    assert_equal %w[0 500 64k 1025 3m 1g], [0, 500, 65_536, 1025, 3 * 1024**2, 1024**3].map { |size| Types::Bytes.new.format(size) }
  end

  def test_a_size_has_a_lower_limit
    refused Types::Bytes.new(least: 1024), 1023, "1"
  end

  def test_a_flag_knows_the_usual_words
    assert_equal [true] * 5, [true, "true", "yes", "on", "1"].map { |word| Types::Flag.new.parse(word) }
    assert_equal [false] * 5, [false, "FALSE", "no", "off", "0"].map { |word| Types::Flag.new.parse(word) }
    refused Types::Flag.new, "perhaps", 2, ""
  end

  def test_a_choice_is_one_of_its_words
    assert_equal :json, Types::Choice.new(:common, :json).parse("json")
    refused Types::Choice.new(:common, :json), "JSON", nil
  end

  def test_a_text_is_not_empty_and_may_be_a_pathname
    assert_equal "config.ru", Types::Text.new("PATH").parse(Pathname.new("config.ru"))
    assert_equal "production", Types::Text.new("NAME").parse(:production)
    refused Types::Text.new("PATH"), "", " ", "a\0b", 5, []
  end

  def test_a_folder_exists_and_becomes_absolute
    assert_equal Dir.pwd, Types::StartFolder.new("DIR").parse(".")
    refused Types::StartFolder.new("DIR"), "/nowhere/at/all", __FILE__
  end

  def test_a_folder_begins_where_the_server_runs
    type = Types::Folder.new("DIR")

    assert_equal File.join(ROOT, "lib"), type.resolve(type.parse("lib")) { ROOT }
    ["/nowhere/at/all", __FILE__].each { |path| assert_raises(Types::Invalid) { type.resolve(path) { ROOT } } }
  end

  def test_words_of_the_system_are_bytes_that_may_be_text
    name = "caf\xC3\xA9".b

    %w[UTF-8 US-ASCII BINARY].each { |encoding| assert_equal "café", Types::Path.new("PATH").parse(name.dup.force_encoding(encoding)) }
    assert_equal "\xFF".b, Types::Path.new("PATH").parse("\xFF")
  end

  def test_only_what_the_engine_serves_may_begin_with_a_header_of_a_proxy
    address = "tcp://127.0.0.1:1?proxy_protocol=v2"

    assert_equal address, Types::Address.new("URI").parse(address)
    [Types::Address.new("URL", served: false), Types::ControlAddress.new("URL")].each do |type|
      assert_match(/proxy_protocol is for the addresses of bind/, assert_raises(Types::Invalid) { type.parse(address) }.message)
    end
  end

  def test_only_what_the_engine_serves_may_have_tls
    address = "ssl://127.0.0.1:1?cert=a.pem&key=a.key"

    assert_equal address, Types::Address.new("URI").parse(address)
    assert_includes Types::Address.new("URI").expectation, "ssl://"
    refute_includes Types::Address.new("URL", served: false).expectation, "ssl://"
    [Types::Address.new("URL", served: false), Types::ControlAddress.new("URL")].each do |type|
      assert_match(/no TLS at this address; use tcp:/, assert_raises(Types::Invalid) { type.parse(address) }.message)
    end
  end

  def test_an_address_says_why_nobody_can_listen_on_it
    error = assert_raises(Types::Invalid) { Types::Address.new("URI").parse("tcp://127.0.0.1:70000") }

    assert_includes error.message, "65535"
  end

  private

  def refused(type, *values)
    values.each do |value|
      error = assert_raises(Types::Invalid, "#{value.inspect} was accepted") { type.parse(value) }
      assert_includes error.message, type.expectation
    end
  end
end
