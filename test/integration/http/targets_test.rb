# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# The forms of a request target (RFC 9112 §3.2), and the env values for them.
class TargetsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  KEYS = %w[PATH_INFO QUERY_STRING REQUEST_URI SCRIPT_NAME].freeze
  TELL = "[200, { 'content-type' => 'text/plain' }, [JSON.generate(env.values_at(*%w[#{KEYS.join(" ")} HTTP_HOST SERVER_NAME SERVER_PORT]))]]".freeze

  # Target => path and query.
  ORIGIN_FORM = {
    "/" => ["/", ""],
    "/?" => ["/", ""],
    "/a/b?c=d&e" => ["/a/b", "c=d&e"],
    "/a?b?c" => ["/a", "b?c"],
    "/a%2Fb%20c?%20" => ["/a%2Fb%20c", "%20"],
    "//a/../b" => ["//a/../b", ""],
    "/a;b=c" => ["/a;b=c", ""],
    "/{a}|^`\"<>" => ["/{a}|^`\"<>", ""]
  }.freeze

  def test_path_and_query_are_told_as_they_were_sent
    server = serve(linted(TELL))
    client = connect(server)

    ORIGIN_FORM.each do |target, (path, query)|
      assert_equal [path, query, target, ""], JSON.parse(client.get(target).body).first(4), target
    end
  end

  def test_an_absolute_form_names_the_host
    server = serve(linted(TELL))
    client = connect(server)

    client.write("GET http://Example.com:8080/a?b HTTP/1.1\r\nhost: example.com:8080\r\n\r\n")

    assert_equal ["/a", "b", "http://Example.com:8080/a?b", "", "Example.com:8080", "Example.com", "8080"],
                 JSON.parse(client.answer.body)
  end

  def test_an_absolute_form_without_path_means_the_root
    server = serve(linted(TELL))
    client = connect(server)

    client.write("GET http://example.com HTTP/1.1\r\nhost: example.com\r\n\r\n")
    assert_equal ["/", ""], JSON.parse(client.answer.body).first(2)
    client.write("GET http://example.com?a HTTP/1.1\r\nhost: example.com\r\n\r\n")

    assert_equal ["/", "a"], JSON.parse(client.answer.body).first(2)
  end

  # RFC 9112 §3.2.2
  def test_beside_an_absolute_form_the_host_field_is_ignored
    server = serve(linted(TELL))
    client = connect(server)

    client.write("GET http://b:81/ HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_equal ["http://b:81/", "", "b:81", "b", "81"], JSON.parse(client.answer.body).last(5)
    client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_equal ["/", "", "a", "a", "80"], JSON.parse(client.answer.body).last(5)
  end

  # RFC 9112 §3.3: the path is empty.
  def test_options_of_the_whole_server_reach_the_application
    tell = "[200, { 'content-type' => 'text/plain' }, [env.values_at(*%w[REQUEST_METHOD SCRIPT_NAME PATH_INFO REQUEST_URI]).inspect]]"
    server = serve(linted(tell))

    assert_equal '["OPTIONS", "", "", "*"]', ask(server, "OPTIONS", "*").body
  end

  # RFC 9110 §2.5
  def test_a_later_minor_version_is_treated_as_the_latest_that_is_known
    server = serve(linted('[200, { "content-type" => "text/plain" }, [env["SERVER_PROTOCOL"], env["rack.input"].read]]'))
    client = connect(server)

    2.times do
      client.write("POST / HTTP/1.2\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n")
      answer = client.answer
      assert_equal ["HTTP/1.1", "HTTP/1.1yes"], [answer.version, answer.body]
    end
  end

  def test_any_method_but_connect_reaches_the_application_as_it_was_sent
    server = serve(linted('[200, { "content-type" => "text/plain" }, [env["REQUEST_METHOD"]]]'))
    client = connect(server)

    %w[GET POST PUT PATCH DELETE OPTIONS TRACE PROPFIND get M-SEARCH X!#$%&'*+.^_`|~9].each do |method|
      assert_equal method, client.request(method).answer.body
    end
  end
end
