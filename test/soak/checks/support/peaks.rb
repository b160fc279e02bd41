# frozen_string_literal: true

require "io/wait"
require "openssl"
require_relative "large_application"

# A server, and peaks of one kind of use: each method opens so many clients, yields at the peak, and closes them all.
class Peaks
  include Fairlead::Test::Waiting
  include Fairlead::Test::Secured

  UPGRADE = "GET /news HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" \
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

  PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0".b

  # Requests before everything else.
  REQUESTS = 10_000

  # Longest wait for a step, in seconds.
  STEP = 120

  def initialize
    options = ["-w", 1, "-t", 3, "-b", ssl_address]
    @server = Fairlead::Test::ServerProcess.new(LargeApplication.text, *options, files: certificate_files).start(seconds: STEP)
  end

  # Brings so many clients, and lets them leave. Returns the memory at the peak.
  def climb(name, count)
    most = 0
    send(name, count) { most = memory }
    most
  end

  def memory = Fairlead::Test::Processes.proportional_memory(@server.serving_pid)

  # Makes Ruby's heap as large as it becomes by requests of one client.
  def warm_up
    connected("") do |socket|
      REQUESTS.times do
        socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        read_response(socket)
      end
    end.close
  end

  # Waits until the memory has not fallen for some seconds.
  def settle
    lowest = [memory, monotonic]
    wait_until("the memory to stay the same", seconds: STEP) do
      lowest = [memory, monotonic] if memory < lowest.first * 0.99
      sleep(0.1)
      monotonic - lowest.last > 8
    end
  end

  # Seconds until the block is true; nil if that takes longer than +most+.
  def seconds_until(most, &condition)
    seconds_of { wait_until("the memory to come back", seconds: most, &condition) }.round(1)
  rescue Fairlead::Test::Waiting::Expired
    nil
  end

  def finish = @server.destroy

  private

  # Connections between two requests.
  def idle(count, &block) = with(count, -> { connected("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n") { |socket| read_response(socket) } }, &block)

  def tls(count, &block)
    port = Integer(@server.stdout[%r{listening on https://.*:(\d+)$}, 1], 10)
    with(count, lambda do
      socket = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", port)).tap { |secured| secured.sync_close = true }
      socket.connect
      socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
      read_response(socket)
      socket
    end, &block)
  end

  # Sessions without a stream.
  def http2(count, &block) = with(count, -> { connected(PREFACE) { |socket| socket.readpartial(64) } }, &block)

  def websockets(count, &block) = with(count, -> { web_socket }, &block)

  # WebSockets that read none of the messages that are published.
  def publications(count)
    with(count, -> { web_socket(buffer: 4096) }) do
      20.times { connected("GET /publish HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", &:read).close }
      yield
    end
  end

  # Messages without their end.
  def incomplete(count, &block)
    with(count, -> { web_socket.tap { |socket| socket.write([0x82, 0xff, 900_001, 0].pack("CCQ>L>"), "x" * 900_000) } }, &block)
  end

  # Bodies that arrive together, and are then read by the application.
  def uploads(count)
    head = "POST /upload HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 1000000\r\n\r\n"
    with(count, -> { connected(head + ("x" * 990_000)) }) do |sockets|
      sockets.each { |socket| socket.write("x" * 10_000) }
      sockets.each(&:read)
      yield
    end
  end

  # Clients of 2 MB that read none of them.
  def slow_readers(count, &block)
    with(count, -> { connected("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n", buffer: 4096) { |socket| socket.wait_readable(STEP) } }, &block)
  end

  def with(count, open)
    sockets = Array.new(count) { open.call }
    yield sockets
  ensure
    sockets&.each(&:close)
  end

  # Returns a socket with these bytes sent; the block waits for the response.
  def connected(bytes, buffer: nil)
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, buffer) if buffer
    socket.connect(Addrinfo.tcp("127.0.0.1", @server.port))
    socket.write(bytes)
    yield socket if block_given?
    socket
  end

  def web_socket(**options) = connected(UPGRADE, **options) { |socket| socket.gets("\r\n\r\n") && socket.read(7) }

  def read_response(socket) = socket.read(socket.gets("\r\n\r\n")[/^content-length: (\d+)/, 1].to_i)
end
