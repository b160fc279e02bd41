# frozen_string_literal: true

# Hostile clients, a process of its own started by hostile.rb: `attackers.rb PORT HEADS BODIES READERS`.
#
# Three kinds: Heads send one byte of a request head a second, Bodies one byte of a body, Readers ask for a large answer
# and never read it. Heads and bodies that are closed come back at once, so that the pressure stays. Prints "ready" when
# all are connected, then works until standard input ends, then prints what became of them as JSON.
require "io/wait"
require "json"
require "socket"

SLICES = 10
LARGE = 9_000_000

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# What became of the connections of one kind.
class Tally
  def initialize
    @lives = []
    @open = []
    @endings = Hash.new(0)
  end

  def ended(how, life)
    @endings[how] += 1
    @lives << life
  end

  def still_open(life)
    @open << life
  end

  def to_h
    { endings: @endings, shortest: @lives.min, longest: [*@lives, *@open].max }
  end
end

# A connection that sends its next byte once a second, for ever.
class Trickler
  def initialize(port, opening, byte, tally)
    @port = port
    @opening = opening
    @byte = byte
    @tally = tally
    connect
  end

  # Reads before it writes: a byte sent to a closed connection would cost us the answer.
  def tick
    answer = @socket.read_nonblock(4096, exception: false)
    return @socket.write_nonblock(@byte, exception: false) if answer == :wait_readable

    ended(answer ? answer[%r{\AHTTP/1\.1 (\d+)}, 1] || "not an answer" : "closed without an answer")
  rescue SystemCallError
    ended("reset")
  end

  def finish
    @tally.still_open(now - @opened)
    @socket.close
  end

  private

  def connect
    @socket = TCPSocket.new("127.0.0.1", @port)
    @opened = now
    @socket.write(@opening)
  end

  def ended(how)
    @tally.ended(how, now - @opened)
    @socket.close
    connect
  end
end

# A connection that asks for /large and reads nothing until it is told to look what there is.
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

  # Takes what there is. Its end tells a server that has given up from one that goes on sending; true when it is known.
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

# Lets readers take what the kernels hold for them, for a few seconds at the most.
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
$stdout.puts "ready"
$stdout.flush

slices = clients.shuffle(random: Random.new(1)).each_slice((clients.size / SLICES.to_f).ceil).to_a
due = now
slices.cycle do |slice|
  slice.each(&:tick)
  due += 1.0 / SLICES
  break if $stdin.wait_readable([due - now, 0].max)
end
read_out(clients.grep(Reader))
clients.each(&:finish)
puts JSON.generate(tallies.transform_values(&:to_h))
