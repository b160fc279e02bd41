# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# A failing application costs one response, never the server: the client can see it, and the log has the reason, once.
class AppErrorTest < Minitest::Test
  include Fairlead::Test::HttpServing

  CutOff = Fairlead::Test::HttpClient::CutOff

  # Failures of an application => text in the log.
  FAILURES = {
    "raise 'secret'" => "secret (RuntimeError)",
    "raise ScriptError, 'secret'" => "secret (ScriptError)",
    "raise Class.new(Exception) { def self.name = 'Own' }, 'secret'" => "secret",
    "throw :nowhere" => "uncaught throw :nowhere (UncaughtThrowError)",
    "exit" => "exit (SystemExit)",
    "abort" => "exit (SystemExit)",
    "raise Interrupt" => "Interrupt",
    "raise SignalException, 'TERM'" => "SIGTERM",
    "def self.deep = deep; deep" => "stack level too deep (SystemStackError)",
    "raise NoMemoryError, 'secret'" => "secret (NoMemoryError)",
    "raise StopIteration, 'secret'" => "secret (StopIteration)",
    "nil" => "must return [status, headers, body] (TypeError)",
    "'text'" => "must return [status, headers, body] (TypeError)",
    "[200, {}]" => "must return [status, headers, body] (TypeError)",
    "{ status: 200 }" => "must return [status, headers, body] (TypeError)",
    "BasicObject.new" => "(NoMethodError)|(TypeError)"
  }.freeze

  def test_every_failure_is_answered_500_and_the_connection_lives_on
    server = serving("production")
    client = connect(server)

    FAILURES.each do |code, message|
      answer = client.get("/failing", "x-code" => code)
      assert_equal [500, "Internal Server Error", nil], [answer.status, answer.reason, answer["connection"]], code
      server.wait_for_output(Regexp.union(message.split("|")))
    end
    assert_equal 200, client.get("/", "x-code" => "[200, {}, ['ok']]").status
  end

  def test_the_log_has_one_entry_with_request_message_class_and_backtrace
    server = serving("production")
    get(server, "/path?query=hidden", "x-code" => "raise 'the message'")
    log = server.stderr

    assert_equal 1, log.scan("error in the application: GET /path: ").size
    assert_equal 1, log.scan("the message (RuntimeError)").size
    assert_match(/config\.ru:\d+/, log)
    refute_includes log, "hidden"
  end

  def test_the_client_is_told_details_in_development_only
    code = { "x-code" => "raise 'the <message>'" }
    development = serving("development")
    production = serving("production")

    assert_match(/RuntimeError: the <message>.*config\.ru:\d+/m, get(development, "/", code).body)
    assert_includes get(development, "/", code.merge("accept" => "text/html")).body, "the &lt;message&gt;"
    refute_match(/message|config\.ru|Runtime/, get(production, "/", code).body)
    refute_match(/message|config\.ru|Runtime/, get(production, "/", code.merge("accept" => "text/html")).body)
  end

  def test_an_error_for_head_has_no_body
    client = connect(serving("development"))

    2.times { assert_equal 500, client.request("HEAD", "/", { "x-code" => "raise 'no'" }).answer(to: "HEAD").status }
  end

  def test_an_error_before_the_first_part_of_a_body_takes_back_the_head
    server = serving("production")
    ["Enumerator.new { |out| raise 'no' }", "Enumerator.new { |out| out << nil; raise 'no' }"].each do |body|
      answer = get(server, "/", "x-code" => "[200, { 'x' => 'y', 'content-length' => '7' }, #{body}]")
      assert_equal [500, nil], [answer.status, answer["x"]], body
    end
  end

  def test_an_error_behind_the_first_byte_cuts_the_connection
    server = serving("production")

    ["Enumerator.new { |out| out << 'part'; raise 'no' }", "Enumerator.new { |out| out << ''; raise 'no' }",
     "->(stream) { stream << 'part'; raise 'no' }", "->(stream) { raise 'no' }"].each do |body|
      ["{}", "{ 'content-length' => '8' }"].each do |headers|
        client = connect(server).request("GET", "/", { "x-code" => "[200, #{headers}, #{body}]" }).request("GET", "/",
                                                                                                           { "x-code" => "[200, {}, []]" })
        assert_raises(CutOff, "#{headers} #{body}") { client.answer }
      end
    end
    wait_until("the log") { server.stderr.scan("no (RuntimeError)").size == 8 }
  end

  def test_a_thread_that_is_killed_cuts_the_connection_and_is_replaced
    server = serving("production", "-t", "1")

    3.times do
      assert_raises(CutOff) { get(server, "/", "x-code" => "Thread.current.kill") }
      assert_equal 200, get(server, "/", "x-code" => "[200, {}, ['ok']]").status
    end
    wait_until("the log") { server.stderr.scan(/^thread fairlead \d+ was killed; another one takes its place$/).size == 3 }
  end

  def test_an_exception_that_cannot_tell_its_message_is_answered
    server = serving("development")
    code = "raise Class.new(StandardError) { def message = raise('again'); def full_message(**) = raise('again') }"

    assert_equal 500, get(server, "/", "x-code" => code).status
    assert_equal 200, get(server, "/", "x-code" => "[200, {}, ['ok']]").status
  end

  def test_an_exception_from_another_thread_is_one_of_the_applications
    server = serving("production")
    code = "thread = Thread.current; Thread.new { thread.raise('from outside') }; sleep 20; [200, {}, []]"

    assert_equal 500, get(server, "/", "x-code" => code).status
    server.wait_for_output(/from outside \(RuntimeError\)/)
  end

  def test_a_timeout_inside_the_application_leaves_nothing_behind
    server = serving("production", "-t", "1", setup: 'require "timeout"')
    client = connect(server)

    3.times { assert_equal 500, client.get("/", "x-code" => "Timeout.timeout(0.05) { sleep }").status }
    assert_equal 200, client.get("/", "x-code" => "Timeout.timeout(5) { [200, {}, ['ok']] }").status
  end

  private

  # Each request contains the code of its response.
  def serving(environment, *arguments, setup: "")
    serve(unlinted("eval(env['HTTP_X_CODE'])", setup: setup), "-e", environment, *arguments)
  end
end
