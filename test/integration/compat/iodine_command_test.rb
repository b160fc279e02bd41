# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"

# The command `fairlead-iodine`, with an application for iodine and iodine's command line.
class IodineCommandTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  COMMAND = File.join(ROOT, "exe/fairlead-iodine")
  APP = "run ->(env) { [200, {}, [[Iodine::VERSION[/\\A[\\d.]+/], Iodine.threads, GREETING, ENV['RACK_ENV']].join(' ')]] }"

  def test_an_application_is_served_with_iodines_arguments
    server = command(APP, "-p", "0", "-b", "127.0.0.1", "-t", "3", "-C", "setup.rb", "-v", "-www", "www", "config",
                     files: { "setup.rb" => "GREETING = 'hello'", "www/a.txt" => "file", "config/puma.rb" => "raise 'not read'" })

    assert_equal ["0.7 3 hello development", "file"], [get(server).body, get(server, "/a.txt").body]
    assert server.wait_for_output(%r{GET /a\.txt})
    assert_predicate server.stop, :success?
  end

  def test_what_a_file_sets_has_its_effect
    server = command(APP, "-p0", "-b127.0.0.1", "-C=setup.rb", files: { "setup.rb" => "GREETING = 'hi'\nIodine.workers = 2\nIodine.threads = 4" })

    assert_equal "0.7 4 hi development", get(server).body
    assert_equal 2, server.wait_for_workers(2).size
  end

  def test_a_restart_repeats_the_command
    server = command(APP, "-p", "0", "-b", "127.0.0.1", "-C", "setup.rb", "-w", "2", files: { "setup.rb" => "GREETING = 'old'" })
    assert_match(/old/, get(server).body)
    server.write("setup.rb", "GREETING = 'new'")
    server.signal(:USR2)

    wait_until("the new code") { get(server).body.include?("new") }
  end

  def test_a_mistake_is_one_line
    server = own(Fairlead::Test::LaunchedBy.new(COMMAND, APP, "-t", "few")).launch

    assert_equal 1, server.wait_exit.exitstatus
    assert_equal "fairlead: threads must be a whole number, not \"few\"\n", server.stderr
  end

  private

  def command(app, *arguments, **options) = own(Fairlead::Test::LaunchedBy.new(COMMAND, app, *arguments, **options)).start
end
