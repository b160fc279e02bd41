# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# The client of the tests (test/support/http_client.rb).
class HttpClientTest < Minitest::Test
  include Fairlead::Test::HttpClients

  def test_a_response_that_ends_behind_a_chunk_is_told_with_all_its_bytes
    part = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
    listener = TCPServer.new("127.0.0.1", 0)
    server = Thread.new { listener.accept.tap { |socket| socket.write(part) }.close_write }
    client = adopt(TCPSocket.new("127.0.0.1", listener.local_address.ip_port))
    error = assert_raises(Fairlead::Test::HttpClient::CutOff) { client.answer }
    assert_includes(error.message, "ended after #{part.bytesize} bytes, 0 of them not parsed")
  ensure
    server&.join
    listener&.close
  end
end
