# frozen_string_literal: true

require "digest"
require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Request bodies on the wire (RFC 9112 §6, §7.1), split at any place.
class RequestBodyTest < Minitest::Test
  include Fairlead::Test::HttpServing

  ECHO = '[200, { "content-type" => "text/plain" }, [env["rack.input"].read]]'

  # Chunked body => its content.
  CHUNKED = {
    "0\r\n\r\n" => "",
    "5\r\nhello\r\n0\r\n\r\n" => "hello",
    "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n" => "abc",
    "00000a\r\n0123456789\r\n000\r\n\r\n" => "0123456789",
    "A\r\n0123456789\r\n0\r\n\r\n" => "0123456789",
    "3;name=value\r\nabc\r\n0;last\r\n\r\n" => "abc",
    "3 ; name = \"a \\\" ; b\"\r\nabc\r\n0\r\n\r\n" => "abc",
    "3\r\nabc\r\n0\r\nx-checksum: 1\r\nx-other:\r\n\r\n" => "abc",
    "4\r\n\r\n\r\n\r\n0\r\n\r\n" => "\r\n\r\n"
  }.freeze

  def test_a_chunked_body_arrives_decoded_without_extensions_and_trailers
    server = serve(linted(ECHO))
    client = connect(server)

    CHUNKED.each { |coded, plain| assert_equal plain, client.write("#{chunked_head}#{coded}").answer.body, coded }
  end

  def test_a_chunked_request_may_be_split_at_every_byte
    server = serve(linted(ECHO))
    client = connect(server)
    client.socket.setsockopt(:TCP, :NODELAY, true)
    request = "#{chunked_head}3;a=\"b\"\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nx-trailer: 1\r\n\r\n"

    1.upto(request.bytesize - 1) do |position|
      client.write(request.byteslice(0, position))
      client.write(request.byteslice(position..))
      assert_equal "abc0123456789abcdef", client.answer.body, "split at #{position}"
    end
  end

  def test_a_request_may_come_byte_by_byte
    server = serve(linted(ECHO))
    client = connect(server)
    client.socket.setsockopt(:TCP, :NODELAY, true)

    "#{chunked_head}3;a=b\r\nabc\r\n0\r\nx: y\r\n\r\n".each_char { |byte| client.write(byte) }
    assert_equal "abc", client.answer.body
    "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nxyz".each_char { |byte| client.write(byte) }

    assert_equal "xyz", client.answer.body
  end

  def test_trailers_do_not_reach_the_application
    server = serve(linted('[200, { "content-type" => "text/plain" }, [env.keys.grep(/TRAILER|CHECKSUM/).join]]'))

    answer = connect(server).write("#{chunked_head}3\r\nabc\r\n0\r\nx-checksum: 1\r\nx-trailer: 2\r\n\r\n").answer

    assert_equal "", answer.body
  end

  def test_a_chunked_body_has_its_length_and_no_transfer_encoding_in_the_env
    server = serve(linted('[200, { "content-type" => "text/plain" }, [env.values_at("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING").inspect]]'))
    client = connect(server)

    assert_equal '["3", nil]', client.write("#{chunked_head}1\r\na\r\n2\r\nbc\r\n0\r\n\r\n").answer.body
    assert_equal '["0", nil]', client.write("#{chunked_head}0\r\n\r\n").answer.body
  end

  def test_bodies_around_the_memory_limit_arrive_whole
    server = serve(linted('require "digest"; [200, { "content-type" => "text/plain" }, [Digest::SHA256.hexdigest(env["rack.input"].read)]]'),
                   "--body-memory-bytes", "64k")
    client = connect(server)

    [65_535, 65_536, 65_537, 3_000_000].each do |size|
      body = Random.new(size).bytes(size)
      digest = Digest::SHA256.hexdigest(body)
      assert_equal digest, client.request("POST", "/", {}, body: body).answer.body, size
      chunks = body.bytes.each_slice(50_000).map { |part| "#{part.size.to_s(16)}\r\n#{part.pack("C*")}\r\n" }
      assert_equal digest, client.write("#{chunked_head}#{chunks.join}0\r\n\r\n").answer.body, "#{size} chunked"
    end
  end

  def test_a_body_that_is_still_coming_does_not_hold_a_ruby_thread
    server = serve(linted(ECHO), "-t", "1")
    slow = connect(server)
    slow.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n12345")

    assert_equal 200, get(server).status
    assert_equal "1234567890", slow.write("67890").answer.body
  end

  def test_get_and_delete_may_have_a_body
    server = serve(linted(ECHO))

    %w[GET DELETE OPTIONS PATCH].each { |method| assert_equal "abc", ask(server, method, "/", {}, "abc").body, method }
  end

  private

  def chunked_head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
end
