# frozen_string_literal: true

require "test_helper"
require "etc"
require "net/http"
require "support/as_stranger"

# A container may run under a user id without a name and a home folder.
class StrangerTest < Minitest::Test
  include Fairlead::Test::Servers

  APP = "run ->(_env) { [200, {}, [Process.uid.to_s]] }"
  HOMELESS = "this user has no home folder"

  def setup
    skip "needs root, to become a user without a name" unless Process.uid.zero?
    assert_raises(ArgumentError) { Etc.getpwuid(Fairlead::Test::AsStranger::ID) }
  end

  def test_a_user_without_a_name_and_a_home_serves
    [[], ["-w", "1"]].each do |processes|
      server = stranger(*processes).start

      assert_equal "12345", Net::HTTP.get(URI(server.url))
      assert_equal 0, server.stop.exitstatus
      assert_empty server.stderr
    end
  end

  def test_check_has_no_folder_for_certificates
    server = stranger("--check").launch

    assert_equal 0, server.wait_exit.exitstatus, server.stderr
    assert_match(/^acme_dir +none +default$/, server.stdout)
  end

  # Keys in the folder of a release would be lost with it.
  def test_what_needs_a_home_says_so_and_what_to_do
    refused "acme_dir: #{HOMELESS}; set acme_dir, HOME or STATE_DIRECTORY", "--acme", "a.example?terms_of_service_agreed=true"
    refused "a certificate for development cannot be kept: #{HOMELESS}; set HOME, or give cert and key", bind: "ssl://127.0.0.1:0"
    refused Fairlead::SystemText::HOMELESS, "--pidfile", "~/pid"
    refused Fairlead::SystemText::HOMELESS, bind: "unix://~/socket"
    refused Fairlead::SystemText::HOMELESS, bind: "ssl://127.0.0.1:0?cert=~/a.pem&key=~/a.key"
  end

  private

  def stranger(*arguments, **options) = own(Fairlead::Test::AsStranger.new(APP, *arguments, **options))

  # Asserts that the check and the start refuse.
  def refused(message, *arguments, **options)
    [[], ["--check"]].each do |check|
      server = stranger(*arguments, *check, **options).launch

      assert_equal 1, server.wait_exit.exitstatus
      assert_equal ["", 1], [server.stdout, server.stderr.lines.size], server.stderr
      assert_includes server.stderr, message
    end
  end
end
