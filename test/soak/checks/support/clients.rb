# frozen_string_literal: true

require "socket"

# Keep-alive clients that make one request after another, each with a number of its own, and record the outcomes. They
# reconnect after a lost connection and give up after a few refused ones.
class Clients
  # id: the number in its path. outcome: :answered, :refused (no connection) or :unanswered. seconds: until then. fresh: true
  # for the first request on its connection.
  Request = Struct.new(:id, :outcome, :seconds, :fresh) do
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

  # Lets every client finish its request and returns all requests in the order of their ends.
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
      fresh = socket.nil?
      request, socket = ask(socket || connect, fresh)
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

  # Makes one request; returns it and the socket, or nil if the connection is over.
  def ask(socket, fresh)
    id = @lock.synchronize { @last_id += 1 }
    started = now
    outcome, goes_on = socket ? exchange(socket, id) : :refused
    socket&.close unless goes_on
    request = Request.new(id, outcome, now - started, fresh)
    @lock.synchronize { @requests << request }
    [request, goes_on ? socket : nil]
  end

  # Returns the outcome, and true if the connection stays open.
  def exchange(socket, id)
    socket.write("GET /#{id} HTTP/1.1\r\nhost: localhost\r\n\r\n")
    head = socket.gets("\r\n\r\n").to_s
    length = head[/^content-length:\s*(\d+)/i, 1].to_i
    return :unanswered unless head.start_with?("HTTP/1.1 200") && socket.read(length)&.bytesize == length

    [:answered, !head.match?(/^connection:\s*close/i)]
  rescue SystemCallError
    :unanswered
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
