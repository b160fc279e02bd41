# frozen_string_literal: true

require "test_helper"
require "rack/lint"
require "rack/mock"
require "stringio"

class ErrorReporterTest < Minitest::Test
  def setup
    @errors = StringIO.new
  end

  def test_it_is_logged_once_with_class_message_backtrace_and_request
    answer(env: { "REQUEST_METHOD" => "POST", "SCRIPT_NAME" => "/app", "PATH_INFO" => "/orders", "QUERY_STRING" => "token=secret" })

    assert_equal 1, @errors.string.scan("boo").size
    assert_match(%r{POST /app/orders: .*error_reporter_test\.rb:\d+:.*boo <b> \(RuntimeError\)\n\tfrom }, @errors.string)
    refute_includes @errors.string, "secret"
  end

  def test_a_path_cannot_forge_a_line_of_the_log
    answer(env: { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/\nforged \e[31m\xFF" })

    assert_includes @errors.string, "GET /%0Aforged %1B[31m%FF"
  end

  def test_in_production_the_client_learns_nothing
    ["text/html", "text/plain", nil].each do |accept|
      body = answer(env: { "HTTP_ACCEPT" => accept }).last

      assert_includes body, "500 Internal Server Error"
      refute_match(/boo|RuntimeError|error_reporter_test/, body)
    end
  end

  def test_in_development_the_client_learns_everything
    body = answer(details: true).last

    assert_match(/RuntimeError: boo <b>\n\n\S*error_reporter_test\.rb/, body)
  end

  def test_a_browser_gets_a_page_in_which_nothing_is_markup
    headers, body = answer(details: true, env: { "HTTP_ACCEPT" => "text/html,*/*;q=0.8" })

    assert_equal "text/html; charset=utf-8", headers["content-type"]
    assert_includes body, "boo &lt;b&gt;"
  end

  def test_others_get_text
    assert_equal "text/plain; charset=utf-8", answer(env: { "HTTP_ACCEPT" => "application/json" }).first["content-type"]
  end

  def test_an_exception_outside_a_request_and_without_a_backtrace_has_an_answer
    status, = handler(details: true).call(RuntimeError.new("boo"), nil)

    assert_equal 500, status
    assert_includes @errors.string, "error in the application: "
  end

  def test_the_answer_is_one_that_rack_allows
    app = ->(env) { handler(details: true).call(RuntimeError.new("boo"), env) }
    response = Rack::MockRequest.new(Rack::Lint.new(app)).get("/")

    assert_equal response.body.bytesize.to_s, response.headers["content-length"]
  end

  def test_without_a_status_it_is_only_logged
    assert_nil handler(own: ->(_) { flunk }).call(RuntimeError.new("boo"), nil, nil)
    assert_includes @errors.string, "boo (RuntimeError)"
  end

  def test_a_request_that_was_not_given_the_time_is_unavailable
    status, _, body = handler.call(Fairlead::ForcedShutdown.new("late"), {}, 503)

    assert_equal 503, status
    assert_includes body.join, "503 Service Unavailable"
  end

  # Form of a handler => its number of arguments.
  HANDLERS = {
    -> {} => 0,
    ->(_error) {} => 1,
    ->(_error, _env) {} => 2,
    ->(_error, _env, _status) {} => 3,
    ->(_error, _env = nil) {} => 2,
    ->(*_all) {} => 3,
    proc { |_error, _env| } => 2,
    Class.new { def call(_error, _env, _status = 0) = nil }.new => 3
  }.freeze

  def test_an_own_handler_is_called_with_as_many_arguments_as_it_takes
    HANDLERS.each do |callable, count|
      given = nil
      callable.define_singleton_method(:call) { |*arguments| (given = arguments) && [418, {}, []] }

      assert_equal [418, {}, []], handler(own: callable).call(RuntimeError.new("boo"), { "x" => 1 })
      assert_equal [RuntimeError, Hash, Integer].first(count), given.map(&:class)
    end
  end

  def test_an_own_handler_that_raises_is_logged_and_replaced
    status, = handler(own: ->(_) { raise ArgumentError, "own" }).call(RuntimeError.new("boo"), {})

    assert_equal 500, status
    assert_match(/boo \(RuntimeError\).*own \(ArgumentError\)/m, @errors.string)
  end

  private

  def handler(details: false, own: nil)
    Fairlead::ErrorReporter.new(Fairlead::EventLog.new(errors: @errors), details: details, handler: own)
  end

  def answer(env: {}, **options)
    raise "boo <b>"
  rescue RuntimeError => e
    status, headers, body = handler(**options).call(e, env)
    assert_equal 500, status
    [headers, body.join]
  end
end
