# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# `rack.early_hints` sends a 103 before the response (RFC 8297).
class EarlyHintsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  def test_they_are_sent_before_the_application_has_answered
    server = serve(linted(<<~RUBY), "--early-hints")
      env["rack.early_hints"].call("link" => "</a.css>; rel=preload")
      sleep 0.01 until File.exist?("go")
      [200, { "content-type" => "text/plain", "link" => "</b.css>" }, ["ok"]]
    RUBY
    client = connect(server).request

    hints = client.answer
    server.write("go", "")
    answer = client.answer

    assert_equal [103, "Early Hints", [["link", "</a.css>; rel=preload"]]], [hints.status, hints.reason, hints.fields]
    assert_equal [200, "</b.css>", "ok"], [answer.status, answer["link"], answer.body]
  end

  def test_they_are_offered_only_where_they_are_switched_on
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, [env.key?('rack.early_hints').inspect]]"))

    assert_equal "false", get(server).body
  end

  def test_several_on_one_connection
    client = connect(hinting("2.times { |number| hints.call('link' => number.to_s) }"))

    2.times do
      client.request
      assert_equal [[103, "0"], [103, "1"], [200, nil]], Array.new(3) { client.answer.then { |answer| [answer.status, answer["link"]] } }
    end
  end

  def test_values_of_several_lines_lists_and_names_in_any_case
    client = connect(hinting("hints.call('Link' => \"a\\nb\", 'x' => %w[c d], 'y' => nil)")).request

    assert_equal [%w[link a], %w[link b], %w[x c], %w[x d]], client.answer.fields
    assert_equal 200, client.answer.status
  end

  def test_another_thread_sends_none
    client = connect(hinting("Thread.new { hints.call('link' => 'a') }.join")).request

    assert_equal 200, client.answer.status
  end

  def test_a_client_of_1_0_gets_none
    client = connect(hinting("hints.call('link' => 'a')")).write("GET / HTTP/1.0\r\n\r\n")

    assert_equal 200, client.answer.status
  end

  def test_fields_that_split_or_frame_are_left_out
    client = connect(hinting("hints.call('link' => \"a\\r\\nx: y\", \"x\\r\\ny\" => 'z', 'z' => \"a\\0\", 'content-length' => '5', " \
                             "'transfer-encoding' => 'chunked', 'connection' => 'close', 'fine' => '1')")).request

    assert_equal [%w[fine 1]], client.answer.fields
    assert_equal [200, "ok"], client.answer.then { |answer| [answer.status, answer.body] }
  end

  def test_hints_that_raise_leave_no_trace
    bad = "{ 'fine' => '1', 'link' => Class.new { def to_s = raise('no') }.new }"
    client = connect(hinting("begin; hints.call(#{bad}); rescue RuntimeError; hints.call('x' => '1'); end"))

    2.times do
      assert_equal [103, [%w[x 1]]], client.request.answer.then { |answer| [answer.status, answer.fields] }
      assert_equal 200, client.answer.status
    end
  end

  def test_they_are_without_effect_once_the_answer_has_begun
    code = "body = Enumerator.new { |out| hints.call('link' => 'late'); out << 'ok' }; next [200, {}, body]"
    client = connect(hinting(code))

    2.times { assert_equal [200, "ok"], client.get.then { |answer| [answer.status, answer.body] } }
  end

  def test_an_error_behind_them_is_answered
    client = connect(hinting("hints.call('link' => 'a'); raise 'no'")).request

    assert_equal [103, 500], Array.new(2) { client.answer.status }
    assert_equal [103, 500], [client.request.answer.status, client.answer.status]
  end

  def test_a_pipelining_client_gets_them_in_order
    client = connect(hinting("hints.call('link' => env['PATH_INFO'])"))
    client.request("GET", "/1").request("GET", "/2")

    assert_equal [[103, "/1"], [200, nil], [103, "/2"], [200, nil]], Array.new(4) { client.answer.then { |answer| [answer.status, answer["link"]] } }
  end

  private

  def hinting(code, setup: "")
    serve(unlinted("hints = env['rack.early_hints']; #{code}; [200, {}, ['ok']]", setup: setup), "--early-hints")
  end
end
