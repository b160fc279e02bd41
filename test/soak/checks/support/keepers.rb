# frozen_string_literal: true

# Clients that keep their connections, a separate process: `keepers.rb PORT CONNECTIONS FIRST STEP COUNT PAUSE`.
#
# Each request has a number of its own (FIRST, FIRST + STEP and so on), demands a random time of work and expects its number
# back. Some heads are sent in two parts, some requests are pipelined. PAUSE is the longest pause behind a response, in
# milliseconds. Ends after COUNT requests, or (COUNT 0) when standard input does, once all responses have come. Prints the
# results of requests and connections as JSON; replaces a connection that the server closes.
require "io/wait"
require "json"
require "socket"

# Frequency of each kind of request, and the longest pause in the middle of a head, in seconds.
SPLIT = 0.1
PIPELINED = 0.05
SPLIT_PAUSE = 0.02

# Longest wait for the last responses.
PATIENCE = 20

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# Numbers of the requests, and their results.
class Tally
  attr_reader :counts, :unanswered, :wrong

  def initialize(first, step, count)
    @next = first
    @step = step
    @left = count.zero? ? Float::INFINITY : count
    @counts = Hash.new(0)
    @unanswered = []
    @wrong = []
  end

  # Takes the number of the next request.
  def take
    @left -= 1
    @next.tap { @next += @step }
  end

  def over? = @left <= 0

  def stop
    @left = 0
  end

  def add(what, by = 1) = @counts[what] += by

  def to_h = { **@counts, unanswered: @unanswered, wrong: @wrong.first(10) }
end

# One client: it has one connection at a time.
class Keeper
  attr_reader :socket

  def initialize(port, tally, pause, random)
    @port = port
    @tally = tally
    @pause = pause
    @random = random
    connect
  end

  # Returns true if it waits for no response.
  def done? = @awaited.empty? && @rest.nil?

  # Returns the time of its next action; nil while it waits for a response.
  def due
    @due if @rest || @awaited.empty?
  end

  # Sends the due bytes.
  def act
    return connect if @socket.nil?
    return write(@rest.tap { @rest = nil }) if @rest
    return if @tally.over?

    numbers = Array.new(@random.rand < PIPELINED ? 3 : 1) { @tally.take }
    @awaited.concat(numbers)
    @tally.add(:requests, numbers.size)
    send_text(numbers.map { |number| "GET /#{number}?#{work} HTTP/1.1\r\nhost: localhost\r\n\r\n" }.join)
  end

  # Reads the available bytes.
  def receive
    piece = @socket.read_nonblock(65_536, exception: false)
    return if piece == :wait_readable
    return closed unless piece

    @received << piece
    nil while @socket && take_response
  rescue SystemCallError
    closed
  end

  def leave = @socket&.close

  private

  # Milliseconds: usually a few, rarely many.
  def work = @random.rand < 0.01 ? 50 : @random.rand(5)

  def connect
    @socket = TCPSocket.new("127.0.0.1", @port)
    @socket.setsockopt(:TCP, :NODELAY, true)
    @received = "".b
    @awaited = []
    @rest = nil
    @due = now + (@random.rand * 0.01)
    @tally.add(:connections)
  rescue SystemCallError
    @tally.add(:refused)
    @socket = nil
    @awaited = []
    @due = now + 0.05
  end

  def send_text(text)
    return write(text) unless @random.rand < SPLIT

    middle = @random.rand(1...text.bytesize)
    @rest = text.byteslice(middle..)
    @due = now + (@random.rand * SPLIT_PAUSE)
    write(text.byteslice(0, middle))
  end

  def write(text)
    @socket.write(text)
  rescue SystemCallError
    closed
  end

  # Takes the next complete response; false if there is none.
  def take_response
    head_end = @received.index("\r\n\r\n") or return false
    head = @received.byteslice(0, head_end).downcase
    length = Integer(head[/^content-length: (\d+)/, 1], 10)
    return false if @received.bytesize < head_end + 4 + length

    body = @received.byteslice(head_end + 4, length)
    @received = @received.byteslice((head_end + 4 + length)..)
    judge(head, body)
    true
  end

  def judge(head, body)
    expected = @awaited.shift
    if head.start_with?("http/1.1 200") && expected && body == "#{expected}\n"
      @tally.add(:answered)
    else
      @tally.wrong << [expected, head, body]
    end
    return close(:announced) if head.match?(/^connection: *close/)

    @due = now + (@random.rand * @pause) if @awaited.empty?
  end

  def closed = close(@awaited.empty? && @rest.nil? ? :closed_idle : :closed_busy)

  def close(how)
    @tally.add(how)
    @tally.unanswered.concat(@awaited)
    @socket.close
    @socket = nil
    @awaited = []
    @rest = nil
    @due = now
  end
end

port, connections, first, step, count, pause = ARGV.map { |text| Integer(text, 10) }
tally = Tally.new(first, step, count)
random = Random.new(first)
keepers = Array.new(connections) { Keeper.new(port, tally, pause / 1000.0, random) }
deadline = nil
until tally.over? && keepers.all?(&:done?) || deadline&.<(now)
  moment = now
  keepers.each { |keeper| keeper.act if keeper.due&.<=(moment) && !(tally.over? && keeper.done?) }
  wait = [keepers.filter_map(&:due).min&.-(now) || 0.1, 0.1].min
  by_socket = keepers.filter(&:socket).to_h { |keeper| [keeper.socket, keeper] }
  ios = by_socket.keys
  ios << $stdin unless tally.over?
  ready, = IO.select(ios, nil, nil, [wait, 0.001].max)
  ready&.each { |io| io == $stdin ? tally.stop : by_socket[io].receive }
  deadline ||= now + PATIENCE if tally.over?
end
tally.add(:late, keepers.count { |keeper| !keeper.done? })
keepers.each(&:leave)
puts JSON.generate(tally.to_h)
