# frozen_string_literal: true

require "test_helper"

# The options of the control server, with our names and with Puma's.
class ControlOptionsTest < Minitest::Test
  include Fairlead::Test::Folders

  NAMES = %i[control_url control_token control_data_only].freeze

  def configuration(text)
    in_folder("config/puma.rb" => text) { Fairlead::Configuration.load(Fairlead::Configuration::Flags.parse([]), environment: {}) }
  end

  def values(text) = configuration(text).then { |configuration| NAMES.map { |name| configuration[name] } }

  {
    "activate_control_app" => ["auto", nil, false],
    "activate_control_app 'tcp://127.0.0.1:9293'" => ["tcp://127.0.0.1:9293", nil, false],
    "activate_control_app 'auto', auth_token: 'x'" => ["auto", "x", false],
    "activate_control_app 'auto', { auth_token: 'x', data_only: true }" => ["auto", "x", true],
    "activate_control_app 'auto', { 'no_token' => true }" => ["auto", "none", false],
    "activate_control_app 'unix:///a', umask: 0o177" => ["unix:///a?umask=0177", nil, false],
    "activate_control_app 'unix:///a', umask: '177'" => ["unix:///a?umask=0177", nil, false],
    "activate_control_app nil" => [nil, nil, false],
    "control_url 'auto'\ncontrol_token :none" => ["auto", "none", false]
  }.each do |text, expected|
    define_method(:"test_#{text.inspect}") { assert_equal expected, values(text) }
  end

  def test_the_token_is_not_shown
    report = Fairlead::Configuration::Report.new(configuration("activate_control_app 'auto', auth_token: 's3cret'")).to_s

    refute_includes report, "s3cret"
    assert_match(/^control_token +\(set\)/, report)
  end

  def test_permissions_are_octal_in_texts
    { "0640" => 0o640, "640" => 0o640, 0o640 => 0o640 }.each do |value, mode|
      assert_equal mode, Fairlead::Configuration.from_options(state_path: "x", state_permission: value).state_permission
    end
  end

  def test_the_short_flags_are_those_of_puma
    flags = Fairlead::Configuration::Flags.parse(%w[-S state --control-url auto --control-token t --plugin a --plugin b])

    assert_empty flags.problems
    assert_equal ["state", "auto", "t", %w[a b]], %i[state_path control_url control_token plugin].map { |name| flags[name] }
  end
end
