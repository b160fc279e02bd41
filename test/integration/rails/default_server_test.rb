# frozen_string_literal: true

require "test_helper"
require "support/rails_servers"

# `rails server` in an application that has this server in its Gemfile instead of Puma, and is otherwise unchanged.
class RailsDefaultServerTest < Minitest::Test
  include Fairlead::Test::RailsServers

  def test_it_is_what_rails_starts_and_it_obeys_the_generated_configuration
    server = rails_server(environment: { "RAILS_MAX_THREADS" => "4" })

    assert_match(/^=> Booting Fairlead$/, server.stdout)
    assert_match(/ready in single mode \(.*, pid #{server.pid}, \d:4 threads, development\)/, server.stdout)
    assert_equal "fairlead #{Fairlead::VERSION}", get(server, "/server").body
    assert_equal server.pid, written_pid(server)
    assert_equal 0, server.stop(:INT).exitstatus
    assert_nil written_pid(server)
  end

  def test_a_second_one_in_the_same_folder_is_refused
    server = rails_server
    output, status = Open3.capture2e(Fairlead::Test::RailsApplication::ENVIRONMENT.merge("PORT" => "0"), RbConfig.ruby, "bin/rails", "server",
                                     chdir: server.directory)

    assert_equal 1, status.exitstatus
    assert_match(/A server is already running/, output)
    assert_equal server.pid, written_pid(server)
  end
end
