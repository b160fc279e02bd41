# frozen_string_literal: true

# Well-behaved clients that make one request after another on one connection, with HTTP/1.1 and with HTTP/2, and count them.
require "socket"
require_relative "http2_frames"

# Clients that share a count.
class SteadyClients
  include Http2Frames

  attr_reader :failures

  def initialize(port, http1:, http2:)
    @port = port
    @counts = { http1: 0, http2: 0 }
    @failures = 0
    @running = true
    @lock = Mutex.new
    @threads = Array.new(http1) { Thread.new { keep(:http1) } } + Array.new(http2) { Thread.new { keep(:http2) } }
  end

  # Requests per second, by protocol.
  def rates(seconds)
    before = @lock.synchronize { @counts.dup }
    sleep seconds
    @lock.synchronize { @counts.to_h { |protocol, count| [protocol, (count - before[protocol]).fdiv(seconds)] } }
  end

  def finish
    @running = false
    @threads.each(&:join)
  end

  private

  def keep(protocol)
    while @running
      begin
        socket = TCPSocket.new("127.0.0.1", @port)
        socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
        send(protocol, socket)
      rescue SystemCallError, EOFError
        @lock.synchronize { @failures += 1 }
      ensure
        socket&.close
      end
    end
  end

  def http1(socket)
    while @running
      socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
      head = socket.gets("\r\n\r\n") or raise EOFError
      socket.read(head[/^content-length: (\d+)/, 1].to_i)
      count(:http1)
    end
  end

  def http2(socket)
    socket.write(PREFACE + frame(:settings, 0, 0))
    buffer = "".b
    stream = -1
    while @running
      socket.write(get(stream += 2) + window_update(0, 200))
      await_end(socket, buffer, stream)
      count(:http2)
    end
  end

  # Reads until the stream has ended.
  def await_end(socket, buffer, stream)
    loop do
      type, flags, of, = take(buffer)
      raise EOFError if type == TYPES[:goaway]
      return if of == stream && type == TYPES[:data] && flags.anybits?(END_STREAM)

      buffer << socket.readpartial(1 << 16) unless type
    end
  end

  def count(protocol)
    @lock.synchronize { @counts[protocol] += 1 }
  end
end
