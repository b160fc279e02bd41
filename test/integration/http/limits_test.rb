# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Limits of the size of a request: a request of that size is served, one more byte is refused.
class LimitsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  HELLO = 'Notes.add(1); [200, { "content-type" => "text/plain" }, [env["rack.input"].read.size.to_s]]'

  def test_the_target
    server = serve(linted(HELLO), "--target-max-bytes", "100")

    assert_equal 200, get(server, "/#{"a" * 99}").status
    assert_refused server, "GET /#{"a" * 100} HTTP/1.1\r\nhost: a\r\n\r\n", 414, "URI Too Long", "request target too long"
  end

  def test_a_target_without_end
    server = serve(linted(HELLO), "--target-max-bytes", "100")

    assert_refused server, "GET /#{"a" * 500}", 414, "URI Too Long", "request target too long"
  end

  def test_the_bytes_of_the_head
    server = serve(linted(HELLO), "--head-max-bytes", "1024")
    head = ->(size) { "GET / HTTP/1.1\r\nhost: a\r\nx: #{"y" * (size - 32)}\r\n\r\n" }
    assert_equal 1024, head.call(1024).bytesize

    assert_equal 200, connect(server).write(head.call(1024)).answer.status
    assert_refused server, head.call(1025), 431, "Request Header Fields Too Large", "head too large"
  end

  def test_a_head_without_end
    server = serve(linted(HELLO), "--head-max-bytes", "1024")

    assert_refused server, "GET / HTTP/1.1\r\nhost: a\r\nx: #{"y" * 1200}", 431, "Request Header Fields Too Large", "head too large"
  end

  def test_the_number_of_fields
    server = serve(linted(HELLO), "--head-max-fields", "10")
    head = ->(count) { "GET / HTTP/1.1\r\nhost: a\r\n#{"x: y\r\n" * (count - 1)}\r\n" }

    assert_equal 200, connect(server).write(head.call(10)).answer.status
    assert_refused server, head.call(11), 431, "Request Header Fields Too Large", "too many fields"
  end

  def test_the_body
    server = serve(linted(HELLO), "--body-max-bytes", "1000")

    assert_equal "1000", ask(server, "POST", "/", {}, "x" * 1000).body
    assert_refused server, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1001\r\n\r\n", 413, "Content Too Large", "body too large"
  end

  def test_a_chunked_body
    server = serve(linted(HELLO), "--body-max-bytes", "1000")
    body = ->(size) { "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1f4\r\n#{"x" * 500}\r\n#{size.to_s(16)}\r\n#{"x" * size}" }

    assert_equal "1000", connect(server).write("#{body.call(500)}\r\n0\r\n\r\n").answer.body
    assert_refused server, body.call(501), 413, "Content Too Large", "body too large"
  end

  def test_a_body_of_any_size_where_there_is_no_limit
    server = serve(linted(HELLO), "--body-max-bytes", "0")

    assert_equal "2000000", ask(server, "POST", "/", {}, "x" * 2_000_000).body
  end

  def test_a_refused_client_that_goes_on_sending_still_gets_the_answer
    server = serve(linted(HELLO), "--body-max-bytes", "1000")
    client = connect(server)

    client.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3000000\r\n\r\n")
    Thread.new { client.write("x" * 3_000_000) }.tap { |sender| sender.report_on_exception = false }

    assert_equal 413, client.answer.status
  end

  # A time limits the reading behind a refusal, and not the number of bytes.
  def test_a_refused_client_that_goes_on_sending_for_ever_is_let_go
    client = connect(serve(linted(HELLO), "--body-max-bytes", "1000"))
    client.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n")

    assert_equal 413, client.answer.status
    assert(wait_until("the end of the connection") { gone?(client) })
  end

  def test_the_rest
    server = serve(linted(HELLO))

    assert_refused server, "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n", 501, "Not Implemented", "unsupported method"
    assert_refused server, "#{"A" * 65} / HTTP/1.1\r\nhost: a\r\n\r\n", 501, "Not Implemented", "method too long"
    assert_refused server, "GET / HTTP/3.0\r\nhost: a\r\n\r\n", 505, "HTTP Version Not Supported", "unsupported HTTP version"
    assert_refused server, "POST / HTTP/1.1\r\nhost: a\r\nexpect: x\r\n\r\n", 417, "Expectation Failed", "unsupported expectation"
  end

  private

  def gone?(client)
    client.write("x")
    false
  rescue SystemCallError
    true
  end

  # Asserts that +server+ responds with exactly this, closes, logs one line with the reason, and does not call the
  # application.
  def assert_refused(server, bytes, status, reason, misdeed)
    noted = notes(server)
    lines = server.stderr.lines.size
    client = connect(server)
    answer = client.write(bytes).answer

    assert_equal [status, reason, "#{reason}\n"], [answer.status, answer.reason, answer.body]
    assert_equal "close", answer["connection"]
    assert_predicate client, :closed?
    wait_until("the log") { server.stderr.lines.size > lines }
    assert_match(/\Arefused #{status} \(#{misdeed}\) from 127\.0\.0\.1:\d+\n\z/, server.stderr.lines.drop(lines).join)
    assert_equal noted, notes(server)
    assert_equal 200, get(server).status
  end
end
