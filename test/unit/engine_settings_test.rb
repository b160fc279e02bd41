# frozen_string_literal: true

require "test_helper"
require "support/apart"

# An option whose scope is the engine is a field of its Config that bears its name, or one of those that a field is made of;
# and the engine does something with each field.
class EngineSettingsTest < Minitest::Test
  include Fairlead::Test::Apart

  # With compression, so that what belongs to it counts.
  OPTIONS = { bind: "tcp://127.0.0.1:0", compress: true }.freeze

  SOURCES = File.join(ROOT, "crates/engine/src")

  # Where no field has the name of the option: the field, or parameter, that is made of it.
  ELSEWHERE = {
    body_disk_total_bytes: "request_totals",
    request_memory_total_bytes: "request_totals",
    compress: "compression",
    access_log_format: "Logs"
  }.freeze

  # What no option has the name of.
  MADE = %w[acme_challenges compression descriptors files request_totals trim_memory].freeze

  def setup
    @service = Fairlead::Service.new(Fairlead::Configuration.from_options(OPTIONS), log: Fairlead::EventLog.new(quiet: true)).open
  end

  def teardown = @service.close

  # Without one of them no engine is made. That there is no other setting to ask for, every test with a server shows.
  def test_every_setting_is_read
    settings = @service.engine_settings

    assert_empty Fairlead::Options.settings.select(&:engine?).map(&:name) - settings.keys
    assert_equal(settings.keys, settings.keys.select { |name| missed?(name, settings.except(name)) })
  end

  def test_every_option_of_the_engine_is_a_field
    options = Fairlead::Options.settings.select(&:engine?).map { |option| option.name.to_s }

    assert_operator options.size, :>, 30
    assert_equal (options - ELSEWHERE.keys.map(&:to_s)).sort, (fields - MADE).sort
  end

  def test_the_engine_uses_every_field
    code = Dir.glob("#{SOURCES}/**/*.rs").map { |path| File.readlines(path).grep_v(%r{^\s*//}).join }.join

    assert_empty(fields.reject { |field| code.match?(/\.#{field}\b/) })
  end

  private

  # The names of all fields of the structs that are settings.
  def fields
    @fields ||= File.read("#{SOURCES}/config.rs").scan(/^settings! \{\n(.*?)^\}/m).join.scan(/^ +pub (\w+): /).flatten
  end

  def missed?(name, settings)
    Fairlead::Native::Engine.new(->(_) {}, [], settings, nil, 0) { nil }.stop
    false
  rescue KeyError => e
    e.message == "the setting #{name} is missing"
  end
end
