# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# If the application raises, the result of lowlevel_error_handler is the response.
class ErrorHandlerTest < Minitest::Test
  include Fairlead::Test::HttpServing

  CutOff = Fairlead::Test::HttpClient::CutOff

  APP = <<~'RUBY'
    run lambda { |env|
      raise "no" if env["PATH_INFO"] == "/raise"
      return [200, {}, Enumerator.new { |out| out << "part"; raise "late" }] if env["PATH_INFO"] == "/late"

      [200, {}, ["ok"]]
    }
  RUBY

  # Its body notes that it is closed.
  HANDLER = <<~'RUBY'
    class Body
      def initialize(text) = @text = text
      def each = yield(@text)
      def close = File.write("closed", "x", mode: "a")
    end

    lowlevel_error_handler do |error, env, status|
      [status + 18, { "x-error" => error.message }, Body.new("#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}")]
    end
  RUBY

  def test_its_response_is_sent_and_the_exception_logged
    client = connect(serving(HANDLER))
    answer = client.get("/raise")

    assert_equal [518, "no", "GET /raise"], [answer.status, answer["x-error"], answer.body]
    assert_equal 200, client.get.status
    assert_equal "x", File.read(@server.path("closed"))
    assert_logged(/error in the application: GET \/raise: .*no \(RuntimeError\)/, @server)
  end

  def test_it_wins_over_the_error_page_of_the_public_folder
    server = serving(HANDLER, "--public", "public", files: { "public/500.html" => "page" })

    assert_equal 518, get(server, "/raise").status
  end

  def test_it_is_not_called_once_a_response_has_begun
    server = serving("lowlevel_error_handler { |_| File.write('called', ''); [500, {}, []] }")

    assert_raises(CutOff) { get(server, "/late") }
    assert_logged("late (RuntimeError)", server)
    refute_path_exists server.path("called")
  end

  # Failures of a handler => text in the log.
  FAILURES = {
    "raise ArgumentError, 'own'" => "own (ArgumentError)",
    "'text'" => "must return [status, headers, body] (TypeError)",
    "[99, {}, []]" => "return one between 200 and 999 (TypeError)",
    "[500, {}, Enumerator.new { raise IOError, 'body' }]" => "body (IOError)"
  }.freeze

  def test_one_that_fails_costs_nothing_but_its_response
    FAILURES.each do |code, message|
      server = serving("lowlevel_error_handler { |error| #{code} }")
      client = connect(server)

      assert_equal 500, client.get("/raise").status, code
      assert_equal 200, client.get.status, code
      assert_logged("no (RuntimeError)", server)
      assert_logged(message, server)
    end
  end

  def test_an_object_with_call_does_too
    server = serving("class Own; def call(error) = [503, {}, [error.class.name]]; end\nlowlevel_error_handler Own.new")

    assert_equal "RuntimeError", get(server, "/raise").body
  end

  def test_what_cannot_be_called_is_a_mistake_with_its_line
    server = launch(APP, "-C", "config.rb", files: { "config.rb" => "\nlowlevel_error_handler 'text'" })

    refute_equal 0, server.wait_exit.exitstatus
    assert_includes server.stderr, "config.rb:2: lowlevel_error_handler: must be a block, or an object that responds to call"
  end

  private

  def serving(configuration, *arguments, files: {})
    @server = serve(APP, "-C", "config.rb", "-e", "production", *arguments, files: { "config.rb" => configuration, **files })
  end
end
