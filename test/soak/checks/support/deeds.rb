# frozen_string_literal: true

require "socket"

# Keep-alive clients that request one deed of an application after another, at random, and compare each response with the
# expected one. The sequence of a client's requests follows from the seed and its number.
class Deeds
  # A wrong or missing response: the requested path, and the response.
  Wrong = Struct.new(:path, :got)

  # A longer wait counts as a loss.
  PATIENCE = 120

  attr_reader :wrong

  # +deeds+: the path of each, and its response: a text, a status, or :closed if the connection ends without one. "ID" in a
  # path and in a text stands for the number of the request.
  def initialize(port, deeds, clients:, seed:)
    @port = port
    @deeds = deeds
    @lock = Mutex.new
    @counts = Hash.new(0)
    @wrong = []
    @running = true
    @threads = Array.new(clients) { |number| Thread.new { run(number, Random.new(seed + number)) } }
  end

  # Lets each client finish its request. Returns the number of times that each deed was done.
  def finish
    @running = false
    @threads.each(&:join)
    @counts
  end

  private

  def run(number, random)
    socket = nil
    id = number * 1_000_000
    while @running
      id += 1
      path, expected = @deeds.to_a.sample(random: random).map { |part| part.is_a?(String) ? part.sub("ID", id.to_s) : part }
      socket ||= TCPSocket.new("127.0.0.1", @port)
      got, goes_on = ask(socket, path, expected)
      socket = socket.close unless goes_on
      note(path, got, got == expected)
    end
  ensure
    socket&.close
  end

  def note(path, got, is_right)
    @lock.synchronize do
      @counts[path[/\A\/[a-z-]+/]] += 1
      @wrong << Wrong.new(path, got) unless is_right
    end
  end

  # Returns the response, in the form of the expected one, and true if the connection stays open.
  def ask(socket, path, expected)
    socket.write("GET #{path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
    return [:nothing, false] unless socket.wait_readable(PATIENCE)

    head = socket.gets("\r\n\r\n") or return [:closed, false]
    body = socket.read(Integer(head[/^content-length: (\d+)/i, 1], 10))
    status = Integer(head[9, 3], 10)
    got = status == 200 || !expected.is_a?(Integer) ? "#{"#{status} " unless status == 200}#{body}" : status
    [got, !head.match?(/^connection: close/i)]
  rescue SystemCallError
    [:closed, false]
  end
end
