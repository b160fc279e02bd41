# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"

# `rackup -s fairlead`: in its development environment rackup puts Rack::Lint, ShowExceptions and its own log around the
# application, so every response is checked.
class RackupTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = <<~RUBY
    run lambda { |env|
      raise "told by ShowExceptions" if env["PATH_INFO"] == "/raise"
      [200, { "content-type" => "text/plain" }, ["\#{env["SERVER_SOFTWARE"]} \#{env["rack.input"].read}"]]
    }
  RUBY

  VERSIONED = <<~RUBY
    version = File.read("version")
    run ->(_env) { [200, { "content-type" => "text/plain" }, [version]] }
  RUBY

  def test_it_serves_and_ends_with_int
    server = rackup("-o", "127.0.0.1", "-p", 0)

    assert_match(/\Afairlead \d\S+ \z/, get(server).body)
    assert_match(/ body\z/, ask(server, "POST", "/", {}, "body").body)
    assert_equal [500, true], get(server, "/raise").then { |answer| [answer.status, answer.body.include?("told by ShowExceptions")] }
    assert_equal 0, server.stop(:INT).exitstatus
  end

  def test_its_options_and_ours_arrive
    server = rackup("-o", "127.0.0.1", "-p", 0, "-O", "Threads=2:3", "-O", "workers=2")

    assert_match(/2 workers, 2:3 threads each/, server.stdout)
    assert_equal 2, server.worker_pids.size
    assert_equal 200, get(server).status
  end

  def test_a_configuration_file_counts
    server = rackup("-o", "127.0.0.1", "-p", 0, files: { "config/fairlead.rb" => "threads 1, 7" })

    assert_match(/1:7 threads/, server.stdout)
  end

  # The pid file is rackup's. Rackup refuses to start if the file has the id of a running process, and removes it at its end.
  def test_it_restarts_and_the_pid_file_stays
    server = rackup("-o", "127.0.0.1", "-p", 0, "-P", "server.pid", app: VERSIONED, files: { "version" => "1" })
    2.upto(4) { |number| restart(server, :USR2, number) }

    wait_until("only the pid file of the new code") { Dir.glob(server.path("server.pid.*")).size == 1 }
    assert_match(/\Aserver\.pid\.spawner\d+\z/, File.basename(Dir.glob(server.path("server.pid.*")).first))
    assert_equal server.pid, written_pid(server)
    assert_equal 0, server.stop.exitstatus
    refute_path_exists server.path("server.pid")
  end

  def test_workers_are_replaced_and_the_pid_file_stays
    server = rackup("-o", "127.0.0.1", "-p", 0, "-P", "server.pid", "-O", "workers=2", app: VERSIONED, files: { "version" => "1" })
    2.upto(4) { |number| restart(server, number == 3 ? :USR2 : :USR1, number) }

    assert_equal server.pid, written_pid(server)
    assert_equal 0, server.stop.exitstatus
    assert_empty Dir.glob(server.path("server.pid*"))
  end

  def test_an_option_that_makes_no_sense_is_told
    server = launch_rackup("-O", "Threads=few", &:launch)

    refute_equal 0, server.wait_exit.exitstatus
    assert_match(/threads: /, server.stderr)
  end

  private

  def rackup(...) = launch_rackup(...).start

  def restart(server, signal, number)
    server.write("version", number.to_s)
    server.signal(signal)
    wait_until("version #{number}", seconds: 30) { get(server).body.to_i == number }
    wait_until("the end of the restart") { server.worker_pids.empty? || server.stdout.scan(/restart: done/).size == number - 1 }
  end

  def written_pid(server) = Integer(File.read(server.path("server.pid")), 10)

  def launch_rackup(*arguments, app: APP, **options)
    program = Gem.bin_path(Gem::Specification.find_all_by_name("rackup").any? ? "rackup" : "rack", "rackup")
    server = Fairlead::Test::LaunchedBy.new(program, app, "-s", "fairlead", *arguments, **options)
    own(server)
    yield server if block_given?
    server
  end
end
