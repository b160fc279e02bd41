# frozen_string_literal: true

require "test_helper"
require "support/apart"

# Each option with the scope of the engine must be a field of its Config with the same name, or part of a field; and the
# engine must use each field.
class EngineSettingsTest < Minitest::Test
  include Fairlead::Test::Apart

  # With compression, so that the options of compression count.
  OPTIONS = { bind: "tcp://127.0.0.1:0", compress: true }.freeze

  SOURCES = File.join(ROOT, "crates/engine/src")

  # Options without a field of their own name => the field, or parameter, that they are part of.
  ELSEWHERE = {
    body_disk_total_bytes: "request_totals",
    request_memory_total_bytes: "request_totals",
    compress: "compression",
    history_bytes: "with_history",
    access_log_format: "Logs"
  }.freeze

  # Fields without an option of their name.
  MADE = %w[acme_challenges compression descriptors files generation request_totals resident_memory trim_memory].freeze

  def setup
    @service = Fairlead::Service.new(Fairlead::Configuration.from_options(OPTIONS), log: Fairlead::EventLog.new(quiet: true)).open
  end

  def teardown = @service.close

  # Without one of them an engine cannot be made. Every test with a server shows that the engine reads no other setting.
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

  # Names of all fields of the structs with settings.
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
