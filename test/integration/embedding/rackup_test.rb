# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"

# `rackup -s fairlead`: in its development environment rackup puts Rack::Lint, ShowExceptions and its own log around the
# application, so every answer is checked on the way.
class RackupTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = <<~RUBY
    run lambda { |env|
      raise "told by ShowExceptions" if env["PATH_INFO"] == "/raise"
      [200, { "content-type" => "text/plain" }, ["\#{env["SERVER_SOFTWARE"]} \#{env["rack.input"].read}"]]
    }
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

  def test_it_is_restarted_with_and_without_workers
    [[], ["-O", "workers=2"]].each do |flags|
      server = rackup("-o", "127.0.0.1", "-p", 0, *flags)
      server.write("config.ru", "run ->(_env) { [200, { 'content-type' => 'text/plain' }, ['new code']] }")
      server.signal(:USR2)
      wait_until("the new code", seconds: 30) { new_code?(server) }

      assert_empty server.stderr.lines.grep(/restart/)
    end
  end

  def test_an_option_that_makes_no_sense_is_told
    server = launch_rackup("-O", "Threads=few", &:launch)

    refute_equal 0, server.wait_exit.exitstatus
    assert_match(/threads: /, server.stderr)
  end

  private

  # Without workers nobody answers while the new program starts.
  def new_code?(server)
    get(server).body == "new code"
  rescue SystemCallError, Fairlead::Test::HttpClient::CutOff
    false
  end

  def rackup(...) = launch_rackup(...).start

  def launch_rackup(*arguments, **options)
    program = Gem.bin_path(Gem.loaded_specs.key?("rackup") ? "rackup" : "rack", "rackup")
    server = Fairlead::Test::LaunchedBy.new(program, APP, "-s", "fairlead", *arguments, **options)
    own(server)
    yield server if block_given?
    server
  end
end
