# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "logger"
require "pathname"
require "stringio"

# A program passes its existing log to its server.
class LoggerTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  def setup
    @io = StringIO.new
    @logger = Logger.new(@io, formatter: ->(level, _, _, text) { "#{level} #{text}\n" })
  end

  def teardown
    @server&.stop(0)
    super
  end

  def test_a_logger_gets_what_the_server_and_the_engine_say_and_no_requests
    serving(logger: @logger) do |server|
      get(server, "/raise")
      client = connect(server).write("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")
      client.answer
      client.close
    end

    assert_match(%r{\AINFO listening on http://127\.0\.0\.1:\d+\n}, @io.string)
    assert_match(%r{^ERROR error in the application: GET /raise: .*oops \(RuntimeError\)}, @io.string)
    assert_match(/^WARN refused 400 \(repeated host\) from 127\.0\.0\.1:\d+$/, @io.string)
    refute_includes @io.string, "GET / "
  end

  def test_it_gets_requests_if_they_are_wanted
    serving(log: @logger, log_requests: true, access_log_format: :common) { |server| 3.times { |n| get(server, "/n#{n}") } }

    assert_equal(%w[/n0 /n1 /n2], @io.string.scan(%r{^INFO 127\.0\.0\.1 .*"GET (/n\d) HTTP/1\.1" 200 2 \d}).flatten)
  end

  def test_it_stays_silent_if_it_is_to_be_quiet_and_tells_more_if_asked
    serving(logger: @logger, quiet: true) { |server| get(server) }
    assert_empty @io.string

    serving(logger: @logger, debug: true, threads: 1) { |server| get(server) }
    assert_match(/^DEBUG thread fairlead 1 serves$/, @io.string)
  end

  def test_an_io_and_an_object_with_one_method_will_do
    lines = Thread::Queue.new
    [@io, lines].each { |log| serving(log: log) { |server| get(server) } }

    assert_match(/\Alistening on .*\n\z/, @io.string)
    assert_match(/\Alistening on .*\n\z/, lines.pop)
  end

  def test_two_servers_of_one_program_have_logs_of_their_own
    other = StringIO.new
    serving(logger: @logger) do |server|
      second = Fairlead::Server.new(APP, bind: "tcp://127.0.0.1:0", logger: Logger.new(other)).start
      get(second, "/raise")
      get(server)
      second.stop
    end

    assert_includes other.string, "oops"
    refute_includes @io.string, "oops"
  end

  def test_a_logger_that_raises_harms_no_request
    raising = Object.new
    %i[info warn error].each { |level| raising.define_singleton_method(level) { |_| raise IOError, "closed" } }

    serving(logger: raising) { |server| assert_equal [500, 200], %w[/raise /].map { |path| get(server, path).status } }
  end

  def test_warnings_about_options_go_to_the_log
    Fairlead::Server.new(APP, logger: @logger, public_hidden: true)

    assert_equal "WARN warning: Fairlead::Server: public_hidden: has no effect without public_dir\n", @io.string
  end

  def test_something_else_is_refused
    [1, "server.log", Pathname("server.log"), Object.new].each do |object|
      assert_raises(Fairlead::ConfigurationError, object.inspect) { Fairlead::Server.new(APP, logger: object) }
    end
  end

  APP = ->(env) { env["PATH_INFO"] == "/raise" ? raise("oops") : [200, {}, ["hi"]] }

  private

  def serving(**options)
    @server = Fairlead::Server.new(APP, bind: "tcp://127.0.0.1:0", **options).start
    yield @server
    assert_equal true, @server.stop
  end
end
