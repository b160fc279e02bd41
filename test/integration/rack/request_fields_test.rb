# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Fields of a request as keys of the env, and fields that are left out.
class RequestFieldsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  TELL = <<~'RUBY'
    found = env.select { |key, _| key.start_with?("HTTP_", "CONTENT_") && !%w[HTTP_VERSION HTTP_X_REQUEST_START].include?(key) }
    [200, { "content-type" => "text/plain" }, [found.map { |key, value| "#{key}=#{value}\n" }.sort.join]]
  RUBY

  def test_a_name_becomes_a_key_in_upper_case_with_underscores_for_dashes
    assert_fields "HTTP_X_A_B=1", "X-a-B: 1"
    assert_fields "HTTP_X=1", "x:1"
    assert_fields "HTTP_X!#$%&'*+.^`|~9=1", "X!#$%&'*+.^`|~9: 1"
  end

  def test_a_very_long_name_is_a_key_like_any_other
    assert_fields "HTTP_#{"X_" * 200}Y=1", "#{"x-" * 200}y: 1"
  end

  def test_white_space_around_a_value_is_no_part_of_it
    assert_fields "HTTP_X=a b\tc", "x: \t a b\tc \t"
    assert_fields "HTTP_X=", "x:"
    assert_fields "HTTP_X=", "x:   "
  end

  def test_a_value_may_have_bytes_beyond_ascii
    assert_fields "HTTP_X=\xE4\xC3\xA4\xFF", "x: \xE4\xC3\xA4\xFF"
  end

  def test_repeated_fields_are_joined_in_their_order
    assert_fields "HTTP_X=1, 2, 3", "x: 1", "X: 2", "x: 3"
    assert_fields "HTTP_X=, 2, ", "x:", "x: 2", "x:"
    assert_fields "HTTP_ACCEPT=a, b\nHTTP_X=1, 2", "accept: a", "x: 1", "accept: b", "x: 2"
  end

  def test_many_different_fields_do_not_get_mixed_up
    fields = (1..90).map { |number| "x-#{number}: #{number}" }

    assert_fields (1..90).map { |number| "HTTP_X_#{number}=#{number}" }.sort.join("\n"), *fields
  end

  def test_repeated_cookies_are_joined_as_one_cookie_field
    assert_fields "HTTP_COOKIE=a=1; b=2; c=3", "cookie: a=1; b=2", "Cookie: c=3"
  end

  def test_a_repeated_type_of_the_body_is_joined_too
    assert_fields "CONTENT_TYPE=a, b", "content-type: a", "content-type: b"
  end

  def test_a_name_with_an_underscore_is_not_passed_on
    assert_fields "HTTP_X_B=2", "X_A: 1", "x-b: 2", "_: 3", "x_b: 4", "http_host: 5", "content_type: 6"
  end

  def test_what_middleware_trusts_about_files_is_not_passed_on
    assert_fields "HTTP_X_OTHER=3", "X-Sendfile-Type: X-Accel-Redirect", "x-accel-mapping: /a=/b", "x-other: 3"
  end

  def test_what_concerns_the_connection_is_passed_on
    assert_fields "HTTP_CONNECTION=keep-alive, upgrade\nHTTP_UPGRADE=websocket", "connection: keep-alive, upgrade", "upgrade: websocket"
  end

  private

  def assert_fields(expected, *lines)
    @client ||= connect(serve(linted(TELL)))
    body = @client.write("GET / HTTP/1.1\r\nhost: a\r\n#{lines.map { |line| "#{line}\r\n" }.join}\r\n").answer.body

    assert_equal "#{expected}\n".b.lines.sort, body.lines.reject { |line| line == "HTTP_HOST=a\n" }
  end
end
