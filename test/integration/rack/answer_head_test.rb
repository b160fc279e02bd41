# frozen_string_literal: true

require "test_helper"
require "time"
require "support/http_client"
require "support/rack_apps"

# Status and fields of a response (Rack SPEC, "The Status", "The Headers"), in every form of applications.
class AnswerHeadTest < Minitest::Test
  include Fairlead::Test::HttpServing

  DATE = /\A(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\z/

  def test_the_status_may_be_an_integer_or_what_becomes_one
    client = serving("[eval(env['HTTP_X_STATUS']), {}, ['ok']]")

    { "200" => [200, "OK"], '"404"' => [404, "Not Found"], "201.0" => [201, "Created"], "418" => [418, ""], "999" => [999, ""],
      "Struct.new(:to_i).new(503)" => [503, "Service Unavailable"] }.each do |code, expected|
      answer = client.get("/", "x-status" => code)
      assert_equal expected, [answer.status, answer.reason], code
    end
  end

  def test_what_is_no_status_is_an_error_of_the_application
    client = serving("[eval(env['HTTP_X_STATUS']), {}, ['ok']]")

    ["nil", '"ok"', "0", "99", "100", "101", "199", "-200", "1000", "2**70", "[]"].each do |code|
      assert_equal 500, client.get("/", "x-status" => code).status, code
    end
    wait_until("the log") { @server.stderr.scan("TypeError").size >= 8 }
  end

  def test_names_are_sent_in_lower_case
    assert_equal [%w[x-mixed-case 1], %w[etag W/"a"]], fields("{ 'X-Mixed-Case' => '1', 'ETag' => 'W/\"a\"' }").first(2)
  end

  def test_with_rack_2_a_value_may_have_one_line_for_each_field_line
    skip "Rack 3 has Arrays instead" if rack?("3")

    assert_equal %w[a=1 b=2], fields("{ 'Set-Cookie' => \"a=1\\nb=2\" }").filter_map { |name, value| value if name == "set-cookie" }
  end

  def test_a_value_may_be_a_list
    assert_equal %w[a=1 b=2], fields("{ 'set-cookie' => %w[a=1 b=2] }").filter_map { |name, value| value if name == "set-cookie" }
    assert_empty(fields("{ 'set-cookie' => [] }").select { |name, _| name == "set-cookie" })
  end

  def test_a_value_may_be_empty_or_beyond_ascii_or_no_string
    assert_equal [["x", ""]], fields("{ 'x' => '' }").first(1)
    assert_equal [["x", "\xC3\xA4\tb".b]], fields("{ 'x' => \"ä\\tb\" }").first(1)
    assert_equal [%w[x 1], %w[y z]], fields("{ 'x' => 1, y: :z }").first(2)
  end

  def test_a_nil_value_is_left_out
    assert_equal [%w[y 1]], fields("{ 'x' => nil, 'y' => '1' }").first(1)
  end

  def test_what_is_meant_for_the_server_is_not_sent
    assert_equal [%w[y 1]], fields("{ 'rack.something' => 'x', 'Rack.Other' => ->(io) {}, 'Status' => '404', 'y' => '1' }").first(1)
  end

  def test_the_fields_may_be_anything_that_yields_pairs
    assert_equal [%w[x 1], %w[x 2], %w[y 3]], fields("[['x', '1'], ['x', '2'], ['y', '3']]").first(3)
    assert_equal [%w[x 1], %w[y 2]], fields("Enumerator.new { |out| out.yield('x', '1'); out.yield(['y', '2']) }").first(2)
    assert_equal [%w[x 1]], fields("Rack::Utils::HeaderHash['X' => '1']").first(1) unless rack?("3.1")
    assert_equal [%w[x 1]], fields("Rack::Headers['X' => '1']").first(1) if rack?("3")
  end

  def test_fields_that_yield_no_pairs_are_an_error_of_the_application
    ["nil", "7", "['x']", "{ BasicObject.new => '1' }"].each do |headers|
      assert_equal 500, serving("[200, #{headers}, ['ok']]").get.status, headers
    end
  end

  def test_the_date_is_there_once
    client = serving("[200, JSON.parse(env['HTTP_X_FIELDS'] || '{}'), ['ok']]")

    assert_match DATE, client.get["date"]
    assert_in_delta Time.now, Time.httpdate(client.get["date"]), 3
    assert_equal "Thu, 01 Jan 1970 00:00:00 GMT", client.get("/", "x-fields" => '{"Date":"Thu, 01 Jan 1970 00:00:00 GMT"}')["date"]
  end

  def test_fields_of_the_connection_are_the_servers_own
    client = serving("[200, { 'connection' => 'keep-alive, x-mine', 'keep-alive' => 'timeout=9' }, ['ok']]")

    assert_equal [nil, nil], client.get.then { |answer| [answer["connection"], answer["keep-alive"]] }
    assert_equal 200, client.get.status
  end

  def test_nothing_is_added_that_the_application_did_not_ask_for
    assert_equal %w[content-length date], fields("{}").map(&:first).sort
  end

  def test_many_and_large_fields_are_sent_whole
    headers = "(1..300).to_h { |number| [\"x-\#{number}\", number.to_s * 100] }"

    assert_equal((1..300).map { |number| ["x-#{number}", number.to_s * 100] }, fields(headers).first(300))
  end

  private

  def serving(code) = connect(@server = serve(unlinted(code)))

  # Pairs of name and value for +headers+, which is code.
  def fields(headers) = serving("[200, #{headers}, ['ok']]").get.fields
end
