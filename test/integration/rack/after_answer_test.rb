# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# `rack.after_reply` and `rack.response_finished`: code that an application runs once the client has its response.
class AfterAnswerTest < Minitest::Test
  include Fairlead::Test::HttpServing

  def test_replies_come_in_their_order_and_then_the_finishers_in_reverse
    server = serve(linted(<<~RUBY))
      2.times { |number| env["rack.after_reply"] << -> { Notes.add("reply \#{number}") } }
      2.times { |number| env["rack.response_finished"] << ->(_, _, _, _) { Notes.add("finished \#{number}") } }
      [200, { "content-type" => "text/plain" }, Rack::BodyProxy.new(["ok"]) { Notes.add("closed") }]
    RUBY

    assert_equal "ok", get(server).body
    assert_equal ["closed", "reply 0", "reply 1", "finished 1", "finished 0"], wait_for_notes(server, 5)
  end

  def test_a_finisher_learns_env_status_and_headers
    server = serve(unlinted(<<~RUBY))
      env["rack.response_finished"] << lambda { |seen, status, headers, error|
        Notes.add([seen.equal?(env), seen["PATH_INFO"], status, headers, error].inspect)
      }
      [201, { "x" => "y" }, ["ok"]]
    RUBY

    assert_equal 201, get(server, "/a").status
    assert_equal [[true, "/a", 201, { "x" => "y" }, nil].inspect], wait_for_notes(server, 1)
  end

  # Code of a failing application => status, headers and class of error that a finisher gets.
  FAILURES = {
    "raise 'no'" => %w[nil nil RuntimeError],
    "[]" => %w[nil nil TypeError],
    "[7, {}, []]" => ["7", "{}", "TypeError"],
    "[200, {}, Enumerator.new { |out| raise KeyError }]" => ["200", "{}", "KeyError"],
    "[200, {}, Enumerator.new { |out| out << 'x'; raise KeyError }]" => ["200", "{}", "KeyError"],
    "[200, {}, ->(stream) { raise KeyError }]" => ["200", "{}", "KeyError"],
    "exit" => %w[nil nil SystemExit]
  }.freeze

  def test_a_finisher_learns_the_error
    server = serve(unlinted(<<~RUBY))
      env["rack.response_finished"] << ->(_, status, headers, error) { Notes.add([status.inspect, headers.inspect, error.class].join(" ")) }
      eval(env["HTTP_X_CODE"])
    RUBY

    FAILURES.each_with_index do |(code, expected), index|
      connect(server).request("GET", "/", { "x-code" => code, "connection" => "close" }).rest
      assert_equal expected.join(" "), wait_for_notes(server, index + 1).last, code
    end
  end

  # The child ends by the exception, although the finisher has rescued another one since.
  def test_a_finisher_runs_in_a_process_that_the_application_has_forked
    server = serve(unlinted(<<~RUBY))
      env["rack.response_finished"] << ->(*) { Integer("x") rescue nil }
      child = fork or raise "no"
      Process.wait(child)
      [200, {}, [$?.exitstatus.inspect]]
    RUBY

    assert_equal "1", get(server).body
  end

  def test_a_finisher_learns_that_the_client_has_gone
    server = serve(unlinted(<<~RUBY))
      env["rack.response_finished"] << ->(_, status, _, error) { Notes.add([status, error.is_a?(IOError)].inspect) }
      [200, {}, Enumerator.new { |out| 10_000.times { out << "x" * 10_000; sleep 0.01 } }]
    RUBY
    connect(server).request.tap { |client| client.read_through("xxx") }.reset

    assert_equal ["[200, true]"], wait_for_notes(server, 1)
  end

  def test_one_that_raises_stops_none_of_the_others
    server = serve(linted(<<~RUBY))
      env["rack.after_reply"] << -> { raise "first" } << -> { Notes.add("reply") } << -> { exit }
      env["rack.response_finished"] << ->(*) { Notes.add("finished") } << ->(*) { raise "third" } << ->(*) { throw :nowhere }
      [200, { "content-type" => "text/plain" }, ["ok"]]
    RUBY
    client = connect(server)

    2.times { assert_equal "ok", client.get.body }
    assert_equal %w[reply finished] * 2, wait_for_notes(server, 4)
    ["first (RuntimeError)", "exit (SystemExit)", "third (RuntimeError)", "uncaught throw :nowhere"].each { |error| assert_logged(server, error, 2) }
  end

  def test_the_client_has_its_answer_before_any_of_them_ends
    %w[after_reply response_finished].each do |list|
      server = serve(linted(<<~RUBY), "-t", "1")
        env["rack.#{list}"] << ->(*) { sleep 0.01 until File.exist?("go") }
        [200, { "content-type" => "text/plain" }, Enumerator.new { |out| out << "ok" }]
      RUBY
      assert_equal "ok", get(server).body, list
      server.write("go", "")
    end
  end

  def test_they_run_for_every_kind_of_answer
    server = serve(unlinted(<<~RUBY), files: { "file" => "content" })
      env["rack.after_reply"] << -> { Notes.add("reply") }
      env["rack.response_finished"] << ->(*) { Notes.add("finished") }
      eval(env["HTTP_X_CODE"])
    RUBY

    ["[200, {}, ['a']]", "[204, {}, []]", "[200, {}, File.open('file')]", "[200, {}, ->(stream) { stream << 'a' and stream.close }]",
     "raise 'no'"].each_with_index do |code, index|
      get(server, "/", "x-code" => code)
      assert_equal %w[reply finished] * (index + 1), wait_for_notes(server, 2 * (index + 1)), code
    end
  end

  def test_they_are_lists_of_this_request_alone
    server = serve(linted(<<~RUBY))
      lists = env.values_at("rack.after_reply", "rack.response_finished")
      before = lists.map(&:size)
      lists.each { |list| list << ->(*) {} }
      [200, { "content-type" => "text/plain" }, [before.inspect]]
    RUBY
    client = connect(server)

    3.times { assert_equal "[0, 0]", client.get.body }
  end

  private

  def assert_logged(server, text, times)
    wait_until("#{times} times #{text}") { server.stderr.scan(text).size == times }
  end
end
