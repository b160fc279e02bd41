# frozen_string_literal: true

require "socket"

# Keep-alive clients that make one request after another, each with a number of its own, and remember what became of it.
# They come back after a lost connection and give up after a few refused ones.
class Clients
  # id: the number in its path. outcome: :answered, :refused (no connection) or :unanswered. seconds: until then.
  Request = Struct.new(:id, :outcome, :seconds) do
    def answered?
      outcome == :answered
    end

    def refused?
      outcome == :refused
    end
  end

  REFUSALS = 3

  def initialize(port, number)
    @port = port
    @last_id = 0
    @lock = Mutex.new
    @requests = []
    @running = true
    @threads = Array.new(number) { Thread.new { run } }
  end

  # Lets every client finish its request and returns all requests in the order they ended.
  def finish
    @running = false
    @threads.each(&:join)
    @requests
  end

  private

  def run
    refusals = 0
    socket = nil
    while @running && refusals < REFUSALS
      socket ||= connect
      request, socket = ask(socket)
      refusals = request.refused? ? refusals + 1 : 0
      sleep 0.05 if request.refused?
    end
  ensure
    socket&.close
  end

  def connect
    TCPSocket.new("127.0.0.1", @port)
  rescue SystemCallError
    nil
  end

  # Makes one request; returns it and the socket, or nil when the connection is over.
  def ask(socket)
    id = @lock.synchronize { @last_id += 1 }
    started = now
    goes_on = socket ? exchange(socket, id) : nil
    outcome = socket.nil? ? :refused : goes_on.nil? ? :unanswered : :answered
    socket&.close unless goes_on
    request = Request.new(id, outcome, now - started)
    @lock.synchronize { @requests << request }
    [request, goes_on ? socket : nil]
  end

  # true: answered, and the connection stays; false: answered, and it closes; nil: no whole answer.
  def exchange(socket, id)
    socket.write("GET /#{id} HTTP/1.1\r\nhost: localhost\r\n\r\n")
    head = socket.gets("\r\n\r\n") or return
    length = head[/^content-length:\s*(\d+)/i, 1].to_i
    return unless head.start_with?("HTTP/1.1 200") && socket.read(length)&.bytesize == length

    !head.match?(/^connection:\s*close/i)
  rescue SystemCallError
    nil
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
