# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# A client must not be able to write into the response through an application that passes on its input: fields with CR, LF or
# NUL are left out completely, and logged. With Rack 2, however, a line feed alone makes a list.
class AnswerSplittingTest < Minitest::Test
  include Fairlead::Test::HttpServing

  LINES = ["a\nset-cookie: evil", "\na", "a\n", "a\n\nHTTP/1.1 200 OK", "\n"].freeze
  NAMES = ["x\r", "x\n", "x\r\ny", "x\0", "x\r\nset-cookie: evil", "x:", "x y", " x", "x\t", "", "x\x7f", "\xFF", "ä"].freeze
  VALUES = ["a\rb", "a\0b", "\ra", "a\r", "a\r\nset-cookie: evil", "a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "a\0\nb"].freeze

  def test_no_name_splits_the_answer
    check(NAMES) { |name| { name => "evil", "after" => "1" } }
  end

  def test_no_value_splits_the_answer
    check(VALUES) { |value| { "x" => value, "after" => "1" } }
  end

  def test_no_value_of_a_list_splits_the_answer
    check(VALUES) { |value| { "x" => [value], "after" => "1" } }
  end

  def test_with_rack_3_a_line_feed_is_an_error
    skip "in Rack 2 it makes a list" unless rack?("3")

    check(LINES + LINES.map { |value| [value] }) { |value| { "x" => value, "after" => "1" } }
  end

  def test_with_rack_2_a_line_feed_makes_values_of_the_same_field_and_nothing_else
    skip "in Rack 3 it is an error" if rack?("3")

    LINES.product([false, true]) do |value, in_array|
      answer = answer_with("x" => in_array ? [value] : value, "after" => "1")
      assert_equal value.split("\n", -1), answer.all("x"), value.inspect
      assert_equal %w[after content-length date], answer.fields.map(&:first).sort - ["x"], value.inspect
      assert_equal "ok", answer.body
    end
    refute_match(/left out/, @server.stderr)
  end

  def test_no_cookie_splits_the_answer_and_the_others_are_sent
    VALUES.each do |value|
      answer = answer_with("set-cookie" => ["a=1", value, "b=2"])
      assert_equal %w[a=1 b=2], answer.all("set-cookie"), value.inspect
    end
  end

  def test_a_field_that_frames_is_left_out_too
    answer = answer_with("content-length" => "2\r\nx: y", "transfer-encoding" => "chunked\r")

    assert_equal %w[2 ok], [answer["content-length"], answer.body]
  end

  def test_status_and_reason_come_from_the_server_alone
    server = serve(unlinted("[\"200 OK\\r\\nset-cookie: evil\", {}, ['ok']]"))

    answer = get(server)

    assert_equal [200, "OK", %w[content-length date]], [answer.status, answer.reason, answer.fields.map(&:first).sort]
  end

  private

  # Each response has the field behind the bad one and nothing of the bad one; the log has a line for each.
  def check(bad)
    bad.each do |text|
      answer = answer_with(yield(text))
      assert_equal %w[after content-length date], answer.fields.map(&:first).sort, text.inspect
      assert_equal "ok", answer.body
    end
    wait_until("#{bad.size} log lines") { @server.stderr.scan(/field .* was left out/).size == bad.size }
  end

  # The application gets the fields in a file, because no request could contain them.
  def answer_with(fields)
    @server ||= serve(unlinted("[200, Marshal.load(File.binread('fields')), ['ok']]"))
    @server.write("fields", Marshal.dump(fields))
    @client ||= connect(@server)
    @client.get
  end
end
