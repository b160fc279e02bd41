# frozen_string_literal: true

require "test_helper"
require "digest"
require "open3"
require "support/certificates"
require "support/http2_commands"
require "support/web_socket"

# Clients that are still reading, slowly, long after the server has finished writing: every byte arrives, for every kind of
# response and protocol. After the server's last byte, each client reads more than the kernel buffers (up to 4 MB) plus the
# bytes that pass in the 5 s that a client has for its own end.
class SlowEndingsTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::Secured
  include Fairlead::Test::WebSockets

  parallelize_me!

  PIECE = "0123456789abcdef" * 4096
  COUNT = 320
  RATE = 2_000_000

  # Few enough for the kernel to buffer most of the bytes when the server has finished writing, and too many for 5 s.
  FEW = 8
  SLOWLY = 40_000

  APP = <<~RUBY.freeze
    PIECE = ("0123456789abcdef" * 4096).freeze
    TEXT = (PIECE * #{COUNT}).freeze
    File.write("large", TEXT)
    class Writer
      def initialize(count) = @count = count
      def on_open(client) = @count.times { client.write(PIECE) } && client.close
    end
    class OneFile
      def each = yield(TEXT)
      def to_path = File.expand_path("large")
    end
    run lambda { |env|
      next (env["rack.upgrade"] = Writer.new(env["PATH_INFO"] == "/few" ? #{FEW} : #{COUNT})) && [200, {}, []] if env["rack.upgrade?"]

      body = {
        "/array" => [PIECE] * #{COUNT},
        "/enumerator" => Enumerator.new { |pieces| #{COUNT}.times { pieces << PIECE } },
        "/file" => OneFile.new,
        "/thread" => ->(stream) { Thread.new { stream.write(TEXT); stream.close } }
      }
      [200, {}, body.fetch(env["PATH_INFO"])]
    }
  RUBY

  OPTIONS = ["-t", "8", "--client-pending-bytes", "32m"].freeze

  BODY = Digest::SHA256.hexdigest(PIECE * COUNT)
  EVENTS = Digest::SHA256.hexdigest("data: #{PIECE}\n\n" * COUNT)

  # Options of curl, and the digest of its output.
  KINDS = {
    "array" => [["/array"], BODY],
    "enumerator" => [["/enumerator"], BODY],
    "file" => [["/file"], BODY],
    "thread" => [["/thread"], BODY],
    "event stream" => [["/events", "--header", "accept: text/event-stream"], EVENTS]
  }.freeze

  PROTOCOLS = {
    "HTTP/1.1" => ["http", "--http1.1"],
    "HTTP/2" => ["http", "--http2-prior-knowledge"],
    "HTTP/1.1 over TLS" => ["https", "--http1.1"],
    "HTTP/2 over TLS" => ["https", "--http2"]
  }.freeze

  def test_every_byte_of_every_kind_of_response_arrives_over_http1
    assert_everything_arrives(PROTOCOLS.slice("HTTP/1.1", "HTTP/1.1 over TLS"))
  end

  def test_every_byte_of_every_kind_of_response_arrives_over_http2
    assert_everything_arrives(PROTOCOLS.slice("HTTP/2", "HTTP/2 over TLS"))
  end

  # The server has finished writing and is about to end. HTTP/2 streams are closed then, but their bytes are still on the
  # way.
  def test_every_byte_arrives_although_the_server_ends
    servers = {}
    assert_everything_arrives(PROTOCOLS, servers, "--keep-alive-timeout", "1") do
      servers.each_value { |server| server.signal(:TERM) }
    end
    servers.each_value { |server| assert_equal 0, server.wait_exit.exitstatus }
  end

  def test_every_message_of_a_web_socket_arrives_and_then_the_close_frame
    servers = { "HTTP/1.1" => serve(APP, *OPTIONS), "HTTP/1.1 over TLS" => serve_tls(APP, *OPTIONS) }
    seen = servers.to_h do |protocol, server|
      socket = protocol.end_with?("TLS") ? relayed_tls_socket(server.port) : TCPSocket.new("127.0.0.1", server.port)
      client = adopt_web_socket(Fairlead::Test::WebSocket.over(socket))
      [protocol, Thread.new { received_slowly(client) }]
    end

    servers.each_key { |protocol| assert_equal [COUNT, [nil, ""]], seen[protocol].value, protocol }
  end

  # A client that sends while it reads: a closed socket would respond with a reset, which discards the rest.
  def test_a_web_socket_that_goes_on_sending_loses_nothing
    client = adopt_web_socket(web_socket(serve(APP, *OPTIONS)))

    assert_equal [COUNT, [nil, ""]], received_slowly(client) { client.ping }
  end

  # As above, while the kernel has the remaining bytes.
  def test_a_slow_web_socket_that_goes_on_sending_loses_nothing_that_the_kernel_has
    server = serve(APP, *OPTIONS)
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, 8_192)
    socket.connect(Addrinfo.tcp("127.0.0.1", server.port))
    client = adopt_web_socket(Fairlead::Test::WebSocket.over(socket, "/few"))

    assert_equal [FEW, [nil, ""]], received_slowly(client, SLOWLY) { client.ping }
  end

  def test_every_message_of_a_web_socket_arrives_over_http2
    need("node")
    seen = node(serve(APP, *OPTIONS), <<~JS)
      session.on("remoteSettings", () => {
        const stream = session.request({ ":method": "CONNECT", ":protocol": "websocket", ":path": "/", "sec-websocket-version": "13" },
                                       { endStream: false })
        let bytes = 0, pause = 0, last
        stream.on("data", data => {
          bytes += data.length, pause += data.length, last = data
          if (data.subarray(-2).toString("hex") === "8800") stream.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]))
          if (pause < #{RATE / 5}) return
          stream.pause()
          setTimeout(() => stream.resume(), pause / #{RATE / 1000}), pause = 0
        })
        stream.on("end", () => { stream.end(); say([bytes, last.subarray(-2).toString("hex")]) })
      })
    JS

    assert_equal [(COUNT * (PIECE.bytesize + 10)) + 2, "8800"], seen
  end

  def test_a_client_that_reads_nothing_after_the_last_word_is_cut_off_and_logged
    server = serve(APP, *OPTIONS, "--write-timeout", "1")
    clients = ["/thread", "/events"].map do |path|
      socket = TCPSocket.new("127.0.0.1", server.port)
      socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\naccept: #{path == "/events" ? "text/event-stream" : "*/*"}\r\n\r\n")
      socket
    end
    web_socket(server)
    ["a stream", "an event stream", "a WebSocket"].each do |kind|
      server.wait_for_output(/closed #{kind} of 127.0.0.1:\d+: it has taken nothing for 1 s/)
    end
  ensure
    clients&.each(&:close)
  end

  def test_what_a_client_has_not_taken_when_the_server_has_to_end_is_logged
    server = serve(APP, *OPTIONS, "--shutdown-timeout", "1")
    clients = ["/thread", "/events"].map do |path|
      TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n") }
    end
    clients.each(&:wait_readable)
    server.stop

    assert_match(/closed an event stream of 127.0.0.1:\d+: the server ended before it took \d{7,} bytes/, server.stderr)
  ensure
    clients&.each(&:close)
  end

  private

  # Calls the block once all responses have begun. +servers+: collects the servers.
  def assert_everything_arrives(protocols, servers = {}, *options)
    wanted = protocols.to_a.product(KINDS.to_a).map do |(protocol, (scheme, version)), (kind, ((path, *header), expected))|
      server = servers[scheme] ||= scheme == "http" ? serve(APP, *OPTIONS, *options) : serve_tls(APP, *OPTIONS, *options)
      output = server.path("#{protocol} #{kind}".tr(" ./", "-"))
      command = ["curl", "--silent", "--show-error", "--insecure", "--no-buffer", version, "--limit-rate", RATE.to_s, "--max-time", "60",
                 *header, "--output", output, "#{scheme}://127.0.0.1:#{server.port}#{path}"]
      [protocol, kind, output, expected, Thread.new { Open3.capture2e(*command).first }]
    end
    wait_until("all responses to have begun", seconds: 20) { wanted.all? { |_, _, output, _, thread| File.size?(output) || !thread.alive? } }
    yield if block_given?

    wrong = wanted.filter_map do |protocol, kind, output, expected, thread|
      problem = thread.value
      "#{kind} over #{protocol}: #{File.size?(output)} bytes #{problem}" unless digest(output) == expected
    end
    assert_empty wrong
  end

  # Without the time for reconnecting, with which an event stream begins.
  def digest(path) = Digest::SHA256.hexdigest(File.binread(path).sub(/\Aretry: \d+\n\n/, ""))

  # Returns messages and the reason of the close. Calls the block now and then.
  def received_slowly(client, rate = RATE)
    count = 0
    until client.over?
      client.socket.wait_readable(20)
      client.take_in
      yield if block_given? && client.messages.any?
      taken = client.messages.slice!(0..).map(&:last)
      assert_equal [PIECE], taken.uniq if taken.any?
      count += taken.size
      sleep(taken.sum(&:bytesize).fdiv(rate))
    end
    [count, client.closing]
  end
end
