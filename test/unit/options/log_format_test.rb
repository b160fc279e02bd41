# frozen_string_literal: true

require "test_helper"
require "support/apart"

# The format of the access log. Fairlead checks it before the engine reads it, and both must agree.
class LogFormatTest < Minitest::Test
  include Fairlead::Test::Apart

  TYPE = Fairlead::Options::Types::LogFormat.new("FORMAT")

  GOOD = [
    '%h - - %t "%r" %s %B', "%a%l%u%m%U%q%H%b%D%T%P", "100%% of %>s", "%{s}T %{ms}T %{us}T %{seconds}T", "%{X-Request-ID}i é %%h",
    "%{queue_time}W %{waiting_room_time}W %{lock_wait}W %{trace_id}x", "%{c}a %{c}h"
  ].freeze

  BAD = [
    "pretty", "", "%", "%h %", "%z", "%>b", "%{a}", "%{a", "%{}i", "%{a b}i", "%{total}W", "%W", "%i", "%{lock_wait}T", "%{d}a",
    "%{c}s", "%h\n", "%h\r", 7, nil
  ].freeze

  def test_a_word_becomes_a_symbol
    %w[common combined json].each do |word|
      assert_equal word.to_sym, TYPE.parse(word)
      assert_equal word, TYPE.to_engine(TYPE.parse(word.to_sym))
    end
  end

  def test_a_line_with_directives_stays_as_it_is
    GOOD.each { |text| assert_equal text, TYPE.to_engine(TYPE.parse(text)) }
  end

  def test_what_is_no_format_is_refused
    BAD.each { |text| assert_raises(Fairlead::Options::Types::Invalid, text.inspect) { TYPE.parse(text) } }
  end

  def test_the_engine_takes_what_the_type_takes
    [*GOOD, "common", "combined", "json"].each do |format|
      assert start(format), format
    end
  end

  private

  # Makes an engine with that format, and stops it.
  def start(format)
    configuration = Fairlead::Configuration.from_options(bind: "tcp://127.0.0.1:0", access_log: File::NULL, access_log_format: format)
    service = Fairlead::Service.new(configuration, log: Fairlead::EventLog.new(quiet: true)).open
    Fairlead::Native::Engine.new(->(_) {}, [], service.engine_settings, nil, 0) { nil }.tap(&:stop)
  ensure
    service&.close
  end
end
