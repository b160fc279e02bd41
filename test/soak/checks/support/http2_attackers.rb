# frozen_string_literal: true

# A client that attacks HTTP/2, a separate process started by http2_attacks.rb: `http2_attackers.rb PORT ATTACK`. ATTACK
# `none` only computes.
#
# It sends as fast as it can, and reconnects when it is disconnected, at most a hundred times per second: the cost of the
# connections themselves is not under test. Prints "ready" after the first connection, works until standard input ends, then
# prints the ends of its connections as JSON: the code of the last GOAWAY, or "closed".
require_relative "attack"
require_relative "http2_frames"

# Bytes that each attack sends after the preface: depending on the number of earlier calls, some bytes; nil for no more.
module Attacks
  extend Http2Frames

  AT_ONCE = 50
  STREAMS = 100
  FEW = 10
  OVERFLOW = (1 << 31) - 1

  module_function

  def named(name) = method(name)
  def stream(count) = (2 * count) + 1
  def many(count) = (count * AT_ONCE...(count + 1) * AT_ONCE).map { |number| yield stream(number) }.join

  def rapid_reset(count) = many(count) { |id| get(id) + reset(id) }
  def window_overflow(count) = many(count) { |id| post(id) + window_update(id, OVERFLOW) }
  def too_much_content(count) = many(count) { |id| post(id, field("content-length", "1")) + frame(:data, 1, id, "more") }
  def malformed(count) = many(count) { |id| frame(:headers, 5, id, block + field("connection", "close")) }

  def dependent_on_itself(count)
    many(count) { |id| frame(:headers, 0x25, id, [id, 0].pack("NC") + block) }
  end

  def settings(_count) = setting(3, 7) * AT_ONCE
  def pings(_count) = frame(:ping, 0, 0, "12345678") * AT_ONCE
  def priorities(_count) = frame(:priority, 0, 3, "\0\0\0\0\1") * AT_ONCE
  def unknown_frames(_count) = frame(99, 0, 0, "?") * AT_ONCE
  def window_updates(_count) = window_update(0, 1) * AT_ONCE
  def empty_data(count) = count.zero? ? post(1) : frame(:data, 0, 1) * AT_ONCE
  def continuations(count) = count.zero? ? frame(:headers, 1, 1, block) : frame(:continuation, 0, 1, field("a", "b")) * AT_ONCE

  # One long entry in the dynamic table, and then one byte for each reference to it.
  def field_bomb(count)
    return frame(:headers, 5, 1, "#{block}@#{field("x", "y" * 3900).byteslice(1..)}") if count.zero?

    frame(:headers, 5, stream(count), block + ("\xbe".b * 16_000))
  end

  def crumbs(count) = count < 400 ? frame(:headers, 5, stream(count), block + (field("cookie", "a") * 1_200)) : nil

  def never_reads(count)
    return setting(Http2Frames::INITIAL_WINDOW, OVERFLOW) + window_update(0, OVERFLOW - 65_535) if count.zero?

    count <= STREAMS ? get(stream(count), "/large") : nil
  end

  def garbage(_count) = "\xff".b * 1_000

  # As many streams as allowed, with closed windows.
  def closed_windows(count)
    return setting(Http2Frames::INITIAL_WINDOW, 0) if count.zero?

    count <= STREAMS ? get(stream(count), "/page") : nil
  end

  # Few streams: the application's cost for their requests, which each connection repeats, is not under test.
  def windows_by_bytes(count)
    count <= FEW ? closed_windows(count) : (1..FEW).map { |number| window_update(stream(number), 1) }.join
  end

  def endless_bodies(count) = count < STREAMS ? post(stream(count)) : nil
end

# An attacking connection.
class Attacker
  include Http2Frames

  # Least time between two connections, in seconds.
  PAUSE = 0.01

  def initialize(port, attack, tally)
    @port = port
    @attack = Attacks.named(attack)
    @reads = attack != "never_reads"
    @tally = tally
    connect
  end

  # Sends and receives as much as possible now; waits a moment if that is nothing.
  def work
    @out << (@attack.call((@count += 1) - 1) || "") if @out.empty?
    IO.select(@reads ? [@socket] : nil, @out.empty? ? nil : [@socket], nil, 0.05)
    write
    read
  rescue SystemCallError, EOFError
    ended
  end

  def finish
    @tally.still_open(now - @opened)
    @socket.close
  end

  private

  def connect
    early = PAUSE - (now - @opened) if @opened
    sleep early if early&.positive?
    @socket = TCPSocket.new("127.0.0.1", @port)
    @opened = now
    @out = PREFACE.b + frame(:settings, 0, 0)
    @in = "".b
    @count = 0
    @code = nil
  end

  def write
    sent = @out.empty? ? 0 : @socket.write_nonblock(@out, exception: false)
    @out = @out.byteslice(sent..) if sent.is_a?(Integer)
  rescue Errno::EPIPE, Errno::ECONNRESET
    # The server's last bytes may still be unread.
    read_rest
    raise
  end

  def read
    return unless @reads

    piece = @socket.read_nonblock(1 << 16, exception: false)
    raise EOFError if piece.nil?

    look(piece) if piece != :wait_readable
  end

  def read_rest
    loop { look(@socket.readpartial(1 << 16)) }
  rescue SystemCallError, EOFError
    nil
  end

  def look(piece)
    @in << piece
    while (found = take(@in))
      type, _flags, _stream, payload = found
      @code = payload.unpack1("x4N") if type == TYPES[:goaway]
    end
  end

  def ended
    @tally.ended(@code ? "GOAWAY #{@code}" : "closed", now - @opened)
    @socket.close
    connect
  end
end

# Computes as much as an attacker, and sends nothing: the cost of the attacker itself on a machine shared with the server.
class Bystander
  def work = 20.times { |count| Attacks.rapid_reset(count) }
  def finish = nil
end

port, attack = ARGV
tally = Tally.new
attacker = attack == "none" ? Bystander.new : Attacker.new(Integer(port, 10), attack, tally)
$stdout.puts "ready"
$stdout.flush
attacker.work until $stdin.wait_readable(0)
attacker.finish
puts JSON.generate(tally.to_h)
