# frozen_string_literal: true

require "test_helper"
require "support/apart"

# The extension asks for every option whose scope is the engine, and for everything else that the service tells it; without
# one of them no engine is made. That there is no other setting to ask for, every test with a server shows.
class EngineSettingsTest < Minitest::Test
  include Fairlead::Test::Apart

  # With compression, so that what belongs to it counts.
  OPTIONS = { bind: "tcp://127.0.0.1:0", compress: true }.freeze

  def setup
    @service = Fairlead::Service.new(Fairlead::Configuration.from_options(OPTIONS), log: Fairlead::EventLog.new(quiet: true)).open
  end

  def teardown = @service.close

  def test_every_setting_is_read
    settings = @service.engine_settings

    assert_empty Fairlead::Options.settings.select(&:engine?).map(&:name) - settings.keys
    assert_equal(settings.keys, settings.keys.select { |name| missed?(name, settings.except(name)) })
  end

  private

  def missed?(name, settings)
    Fairlead::Native::Engine.new(->(_) {}, [], settings, nil, 0) { nil }.stop
    false
  rescue KeyError => e
    e.message == "the setting #{name} is missing"
  end
end
