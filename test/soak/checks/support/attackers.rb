# frozen_string_literal: true

# Hostile clients, a process of its own started by hostile.rb: `attackers.rb PORT HEADS BODIES READERS`.
#
# Three kinds: Heads send one byte of a request head per second, Bodies one byte of a body, Readers request a large response
# and never read it. Closed Heads and Bodies reconnect at once, so that the pressure stays. Prints "ready" when all are
# connected, works until standard input ends, then prints the results as JSON.
require_relative "attack"

LARGE = 9_000_000

# A connection that requests /large and does not read before #take.
class Reader
  attr_reader :socket

  def initialize(port, tally)
    @socket = TCPSocket.new("127.0.0.1", port)
    @tally = tally
    @opened = now
    @received = 0
    @socket.write("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n")
  end

  def tick; end

  # Reads the available bytes. Their end tells a server that has given up from one that continues to send; returns true once
  # it is known.
  def take
    @received += @socket.readpartial(1 << 20).bytesize
    ended("sent whole") if @received > LARGE
  rescue EOFError
    ended("closed")
  rescue SystemCallError
    ended("reset")
  end

  def finish
    ended("still open") unless @socket.closed?
  end

  private

  def ended(how)
    @tally.ended(how, now - @opened)
    @socket.close
    true
  end
end

# Lets readers read the bytes in the kernel's buffers, for a few seconds at most.
def read_out(readers, seconds: 5)
  deadline = now + seconds
  until readers.empty? || now > deadline
    ready, = IO.select(readers.map(&:socket), nil, nil, 0.1)
    readers -= readers.select { |reader| ready&.include?(reader.socket) && reader.take }
  end
end

port, heads, bodies, readers = ARGV.map(&:to_i)
Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
tallies = Hash.new { |hash, kind| hash[kind] = Tally.new }
clients = Array.new(heads) { Trickler.new(port, "GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ", "a", tallies[:heads]) }
clients += Array.new(bodies) { Trickler.new(port, "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n", "b", tallies[:bodies]) }
clients += Array.new(readers) { Reader.new(port, tallies[:readers]) }

attack(tallies, clients) { read_out(clients.grep(Reader)) }
