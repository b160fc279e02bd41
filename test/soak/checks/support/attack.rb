# frozen_string_literal: true

# Code shared by the programs in this folder, each a process with hostile clients: results of connections, connections that
# send a byte per second, and the main loop.
require "io/wait"
require "json"
require "socket"

SLICES = 10

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# Results of the connections of one kind.
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

# A connection that sends its next byte once per second, forever.
class Trickler
  def initialize(port, opening, byte, tally)
    @port = port
    @opening = opening
    @byte = byte
    @tally = tally
    connect
  end

  # Reads before it writes: a byte sent to a closed connection would discard the response.
  def tick
    answer = @socket.read_nonblock(4096, exception: false)
    return write if answer == :wait_readable

    ended(answer ? answer[%r{\AHTTP/1\.1 (\d+)}, 1] || "not an answer" : "closed without an answer")
  rescue SystemCallError
    ended("reset")
  end

  def finish
    @tally.still_open(now - @opened)
    @socket.close
  end

  private

  def write = @socket.write_nonblock(@byte, exception: false)

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

# Prints "ready" when all are connected, then lets each have its turn once per second, until standard input ends; then
# yields, and prints their results as JSON.
def attack(tallies, clients)
  $stdout.puts "ready"
  $stdout.flush
  slices = clients.shuffle(random: Random.new(1)).each_slice((clients.size / SLICES.to_f).ceil).to_a
  due = now
  slices.cycle do |slice|
    slice.each(&:tick)
    due += 1.0 / SLICES
    break if $stdin.wait_readable([due - now, 0].max)
  end
  yield if block_given?
  clients.each(&:finish)
  puts JSON.generate(tallies.transform_values(&:to_h))
end
