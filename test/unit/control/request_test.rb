# frozen_string_literal: true

require "test_helper"

class ControlRequestTest < Minitest::Test
  Request = Fairlead::Control::Request

  def test_the_last_part_of_the_path_is_the_command
    { "/stats" => "stats", "/a/b/stats" => "stats", "/stats/" => "stats", "/" => "", "/stats?x=/y" => "stats" }.each do |target, command|
      assert_equal command, Request.new("GET #{target} HTTP/1.1").command
    end
  end

  def test_the_target_may_be_absolute
    request = Request.new("GET http://localhost:9293/stats?token=1 HTTP/1.0")

    assert_equal ["/stats", "token=1"], [request.path, request.query]
  end

  def test_fields_have_no_case
    assert_equal "x y", Request.new("GET / HTTP/1.1\r\nA-Field:  x y \r\nb: c")["a-field"]
  end

  ["", "GET /", "GET / HTTP/2.0", "get / HTTP/1.1", "GET stats HTTP/1.1", "GET /a b HTTP/1.1", "GET / HTTP/1.1\r\nfield",
   "GET / HTTP/1.1\r\n: x", "GET / HTTP/1.1\r\na b: x"].each do |head|
    define_method(:"test_#{head.inspect}_is_malformed") { assert_raises(Request::Malformed) { Request.new(head) } }
  end
end
