# frozen_string_literal: true

require "test_helper"
require "io/wait"
require "support/certificates"

# Bytes that are not a handshake, or that end within one: the server closes the connection, and others are served as before.
class TlsHostileTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  APP = <<~RUBY
    run ->(env) { File.write("asked", env["PATH_INFO"] + "\n", mode: "a"); [200, {}, ["well"]] }
  RUBY
  HELLO_RECORD = "\x16\x03\x01".b
  PATIENCE = 20

  # A record with two ChangeCipherSpec messages, although each must have its own record (RFC 8446 §5).
  TWO_CHANGES = "\x14\x03\x03\0\2\1\1".b

  # A record of two bytes, the first of which is the level "fatal" (RFC 8446 §6).
  ALERT = /\A\x15\x03[\x01-\x03]\x00\x02\x02.\z/mn

  # First bytes that no TLS client sends.
  GARBAGE = {
    zeros: "\0" * 300,
    every_byte: (0..255).to_a.pack("C*"),
    an_empty_record: "#{HELLO_RECORD}\0\0",
    a_record_that_is_too_large: "#{HELLO_RECORD}\xff\xff#{"x" * 70_000}",
    a_hello_that_is_too_large: "#{HELLO_RECORD}\x40\x00\x01\xff\xff\xff#{"x" * 16_380}",
    a_hello_of_nothing: "#{HELLO_RECORD}\0\4\1\0\0\0",
    an_alert: "\x15\x03\x01\0\2\2\50",
    data: "\x17\x03\x03\0\5hello",
    version_2_of_ssl: "\x80\x2e\1\0\2\0\x15\0\0\0\x10#{"x" * 37}",
    noise: Random.new(7).bytes(5000)
  }.transform_values(&:b).freeze

  def test_plain_http_gets_one_answer_and_one_line
    server = serve_tls(APP)
    answer = said_to("GET /plain HTTP/1.1\r\nhost: localhost\r\n\r\n", server.port)

    assert_match(%r{\AHTTP/1\.1 400 Bad Request\r\n.*\r\n\r\nThis port speaks HTTPS.*Use https://\n\z}m, answer)
    assert_logged(/no TLS handshake with 127\.0\.0\.1:\d+ \(it speaks plain HTTP: refused 400\)$/, server)
    assert_equal 1, server.stderr.lines.size, server.stderr
    assert_well server
    assert_equal ["/"], asked(server)
  end

  def test_tls_on_a_port_without_it_is_one_line
    server = serve_tls(APP, "-b", "tcp://127.0.0.1:0")
    error = assert_raises(OpenSSL::SSL::SSLError) { tls_socket(server.ports.last) }

    refute_match(/timeout/i, error.message)
    assert_logged(/TLS/, server)
    assert_equal 1, server.stderr.lines.size, server.stderr
    assert_well server
  end

  def test_garbage_gets_no_further_than_the_handshake
    server = serve_tls(APP, "--handshake-timeout", 1)
    GARBAGE.each do |name, bytes|
      answer = said_to(bytes, server.port)
      refute_match(/HTTP/, answer, name)
      assert_match(ALERT, answer, name) unless answer.empty?
    end

    assert_well server
    assert_equal ["/"], asked(server)
    assert_equal ["no TLS handshake with"], server.stderr.lines.map { |line| line[/no TLS handshake with/] }.uniq, server.stderr
  end

  def test_a_hello_may_come_byte_by_byte
    server = serve_tls(APP)

    assert_equal "well", get_through(server.port) { |bytes, socket| bytes.each_char { |byte| socket.write(byte) } }
  end

  # The server checks the bytes behind the hello before it waits for more.
  def test_what_is_wrong_right_behind_a_hello_ends_the_handshake_at_once
    server = serve_tls(APP, "--handshake-timeout", 10 * PATIENCE)
    said_to(client_hello + TWO_CHANGES, server.port, close: false)

    assert_logged(/no TLS handshake with/, server)
    assert_well server
  end

  def test_a_hello_that_breaks_off_is_given_up_in_time
    server = serve_tls(APP, "--handshake-timeout", 1)
    hello = client_hello
    [0, 1, 5, 6, hello.bytesize / 2, hello.bytesize - 1].each do |length|
      answer, seconds = timed { said_to(hello[0, length], server.port, close: false) }

      assert_empty answer
      assert_operator seconds, :>=, 0.9, "#{length} bytes"
    end
    assert_empty said_to(hello[0, 100], server.port)
    assert_well server
  end

  def test_others_go_on_beside_handshakes_that_stop
    server = serve_tls(APP, "--handshake-timeout", 3, "--max-handshakes", 300)
    hello = client_hello
    stopped = Array.new(200) { TCPSocket.new("127.0.0.1", server.port) }
    stopped.each_with_index { |socket, index| socket.write(hello[0, index * 7 % (hello.bytesize + 1)]) }
    20.times { assert_well server }

    assert_equal 200, stopped.count { |socket| ended?(socket) }
    assert_well server
  ensure
    stopped&.each(&:close)
  end

  private

  def timed
    result = nil
    seconds = seconds_of { result = yield }
    [result, seconds]
  end

  # Returns the server's bytes until the connection ends.
  def said_to(bytes, port, close: true)
    socket = TCPSocket.new("127.0.0.1", port)
    socket.write(bytes)
    socket.close_write if close
    answer = +""
    loop do
      assert socket.wait_readable(PATIENCE), "the server does not end the connection"
      answer << socket.readpartial(1 << 16)
    end
  rescue EOFError, Errno::ECONNRESET, Errno::EPIPE
    answer.to_s.b
  ensure
    socket&.close
  end

  # The server may have sent something before.
  def ended?(socket)
    loop do
      return false unless socket.wait_readable(PATIENCE)

      socket.readpartial(1 << 16)
    end
  rescue EOFError, Errno::ECONNRESET
    true
  end

  def assert_well(server) = assert_equal("well", tls_get(server.port))

  def asked(server) = File.readlines(server.path("asked"), chomp: true)

  # First bytes that OpenSSL sends.
  def client_hello
    with_client { |_client, theirs| read_available(theirs) }
  end

  # Yields a client in the middle of its handshake, and its peer.
  def with_client
    ours, theirs = UNIXSocket.pair
    context = OpenSSL::SSL::SSLContext.new
    client = OpenSSL::SSL::SSLSocket.new(ours, context)
    client.hostname = "localhost"
    client.connect_nonblock(exception: false)
    yield client, theirs
  ensure
    [ours, theirs].each(&:close)
  end

  def read_available(socket)
    assert socket.wait_readable(PATIENCE)
    socket.readpartial(1 << 16)
  end

  # Returns the body of a response. The block forwards the client's bytes to the server.
  def get_through(port)
    with_client do |client, theirs|
      server = TCPSocket.new("127.0.0.1", port)
      server.setsockopt(:TCP, :NODELAY, true)
      up = Thread.new { loop { yield read_available(theirs), server } }
      down = Thread.new { IO.copy_stream(server, theirs) }
      client.connect
      client.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
      client.read.split("\r\n\r\n", 2).last
    ensure
      [up, down].compact.each(&:kill)
      server&.close
    end
  end
end
