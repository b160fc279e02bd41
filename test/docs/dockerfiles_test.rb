# frozen_string_literal: true

require "test_helper"
require "json"

# The Dockerfiles in docs/deploy: their commands are commands of this version, and the rules of the guide hold for them.
class DockerfilesTest < Minitest::Test
  FOLDER = File.join(ROOT, "docs/deploy")

  %w[debian alpine].each do |name|
    define_method(:"test_#{name}_starts_the_server_with_options_that_exist") do
      command = JSON.parse(instruction(name, "CMD"))

      assert_equal %w[bundle exec fairlead], command.first(3)
      flags = Fairlead::Configuration::Flags.parse(command.drop(3))

      assert_equal ["/run/app/state", "unix:///run/app/control.sock"], [flags[:state_path], flags[:control_url]]
    end

    define_method(:"test_#{name}_checks_its_health_with_the_state_file_of_the_server") do
      check = JSON.parse(instruction(name, "HEALTHCHECK")[/\[.*/])

      assert_equal %w[bundle exec fairlead ctl -S /run/app/state ready], check
      assert_includes Fairlead::Control::Tool::COMMANDS, check.last
    end

    define_method(:"test_#{name}_stops_gracefully_as_another_user_than_root") do
      assert_equal ["SIGTERM", "1000:1000"], [instruction(name, "STOPSIGNAL"), instruction(name, "USER")]
      assert_operator text(name).index("\nUSER"), :<, text(name).index("\nCMD")
    end
  end

  def test_both_differ_only_in_packages_and_users
    lines = %w[debian alpine].map { |name| text(name).lines.grep(/\A[A-Z]/).grep_v(/\A(?:RUN (?:apt-get|apk|groupadd|addgroup)|FROM docker)/) }

    assert_equal(*lines)
  end

  private

  # The last instruction of that name.
  def instruction(name, keyword) = text(name).scan(/^#{keyword} (.*)$/).last.first

  def text(name) = File.read(File.join(FOLDER, "Dockerfile.#{name}"))
end
