# frozen_string_literal: true

# Clients that use up shared budgets, a separate process started by budgets.rb: `budget_attackers.rb PORT ATTACK PROTOCOL
# CONNECTIONS`. Each connection requests as much as it may, then neither sends nor reads; connections that the server ends
# are replaced. Prints "ready" after the first round, works until standard input ends, then prints the ends of the
# connections as JSON.
require_relative "attack"
require_relative "http2_frames"

# Bytes that each attack sends on one connection.
module Greed
  extend Http2Frames

  STREAMS = 100
  PART = ("x" * 8_000).freeze
  LONG = ("y" * 3_500).freeze

  module_function

  def opening = Http2Frames::PREFACE.b + frame(:settings, 0, 0) + setting(Http2Frames::INITIAL_WINDOW, 0)
  def streams = (0...STREAMS).map { |number| yield (2 * number) + 1 }.join

  def readers_http1 = "GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n"
  def readers_http2 = opening + streams { |id| get(id, "/large") }

  def pages_http1 = "GET /page HTTP/1.1\r\nhost: localhost\r\n\r\n" * 30
  def pages_http2 = opening + streams { |id| get(id, "/page") }

  def heads_http1 = "GET / HTTP/1.1\r\nhost: localhost\r\nx: #{LONG * 16}"

  # One long entry in the dynamic table, and then one byte for each reference to it.
  def heads_http2
    first = frame(:headers, 5, 1, "#{block}@#{field("x", LONG).byteslice(1..)}")
    rest = (1...STREAMS).map { |number| frame(:headers, 5, (2 * number) + 1, block + ("\xbe".b * 16)) }
    opening + first + rest.join
  end

  def uploads_http1 = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900000\r\n\r\n#{PART * 16}"

  WEB_SOCKET = "host: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" \
               "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

  # A message without its end, with a mask of zeros.
  def message(length) = [0x82, 0xff, length + 1, 0].pack("CCQ>L>") + ("x" * length)

  def messages_http1 = "GET /clients HTTP/1.1\r\n#{WEB_SOCKET}#{message(1_000_000)}"

  def messages_http2
    head = field(":method", "CONNECT") + field(":protocol", "websocket") + field(":scheme", "http") + field(":path", "/clients") +
           field(":authority", "localhost") + field("sec-websocket-version", "13")
    six = (0...6).map { |number| (2 * number) + 1 }
    opening + six.map { |id| frame(:headers, 4, id, head) + message(40_000).scan(/.{1,16000}/m).map { |part| frame(:data, 0, id, part) }.join }.join
  end

  def events_http1 = "GET /events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n"

  def events_http2
    eight = (0...8).map { |number| (2 * number) + 1 }
    opening + eight.map { |id| frame(:headers, 5, id, block("GET", "/events") + field("accept", "text/event-stream")) }.join
  end

  # As many bytes as fit into the window of all bodies at once.
  def uploads_http2 = opening + streams { |id| post(id, field("content-length", "900000")) } + streams { |id| frame(:data, 0, id, PART[0, 2_000]) }
end

# Connections of an attack.
class Greedy
  def initialize(port, bytes, count, tally)
    @port = port
    @bytes = bytes
    @tally = tally
    @opened = {}
    @unsent = {}
    count.times { open }
  end

  # Waits for ended connections, and replaces them.
  def work
    @opened.each_key { |socket| send_more(socket) }
    ended = @opened.keys.reject { |socket| open?(socket) }
    ended.each do |socket|
      @tally.ended("closed", now - @opened.delete(socket))
      @unsent.delete(socket)
      socket.close
      open
    end
    sleep 0.05
  end

  def finish
    @opened.each do |socket, since|
      @tally.still_open(now - since)
      socket.close
    end
  end

  private

  def open
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, 4_096)
    socket.connect(Addrinfo.tcp("127.0.0.1", @port))
    @unsent[socket] = @bytes
    @opened[socket] = now
    send_more(socket)
  rescue SystemCallError
    socket&.close
  end

  def send_more(socket)
    return unless (rest = @unsent[socket])

    sent = socket.write_nonblock(rest, exception: false)
    return if sent == :wait_writable

    rest = rest.byteslice(sent..)
    rest.empty? ? @unsent.delete(socket) : @unsent[socket] = rest
  rescue SystemCallError
    @unsent.delete(socket)
  end

  # The client reads nothing, so only the state of the socket tells (tcp_states.h).
  def open?(socket) = socket.getsockopt(:TCP, Socket::TCP_INFO).data.getbyte(0) == 1
end

port, attack, protocol, count = ARGV
tally = Tally.new
greedy = Greedy.new(Integer(port, 10), Greed.public_send(:"#{attack}_#{protocol}"), Integer(count, 10), tally)
$stdout.puts "ready"
$stdout.flush
greedy.work until $stdin.wait_readable(0)
greedy.finish
puts JSON.generate(tally.to_h)
