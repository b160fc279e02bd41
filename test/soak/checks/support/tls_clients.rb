# frozen_string_literal: true

require "openssl"
require "socket"

# Clients that keep their TLS connections, and send one number after another. A response must be that number.
class TlsClients
  # +closed+: requests without a response, because their connection has ended. +announced+: connections that ended with an
  # announcement in the last response.
  Found = Struct.new(:answered, :closed, :announced, :handshakes, :wrong, keyword_init: true)

  def initialize(port, count, pause: 0)
    @port = port
    @pause = pause
    @context = OpenSSL::SSL::SSLContext.new.tap { |context| context.verify_mode = OpenSSL::SSL::VERIFY_NONE }
    @numbers = Thread::Queue.new
    @going = true
    @next = 0
    @lock = Mutex.new
    @threads = Array.new(count) { Thread.new { run } }
  end

  # Stops them, and returns the sum of their Found.
  def finish
    @going = false
    found = @threads.map(&:value)
    Found.new(**Found.members.to_h { |name| [name, found.map { |one| one[name] }.reduce(:+)] })
  end

  private

  def run
    found = Found.new(answered: 0, closed: 0, announced: 0, handshakes: 0, wrong: [])
    while @going
      connection = connect(found) or next
      nil while @going && ask(connection, found)
      connection.close
    end
    found
  end

  def connect(found)
    connection = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @port), @context)
    connection.sync_close = true
    connection.connect
    found.handshakes += 1
    connection
  rescue SystemCallError, OpenSSL::SSL::SSLError, IOError
    sleep 0.02
    nil
  end

  # Returns true if the connection stays open.
  def ask(connection, found)
    number = @lock.synchronize { @next += 1 }
    connection.write("GET /#{number} HTTP/1.1\r\nhost: localhost\r\n\r\n")
    head = connection.gets("\r\n\r\n") or raise EOFError
    body = connection.read(head[/^content-length: (\d+)/i, 1].to_i)
    raise EOFError if body.nil?

    found.answered += 1
    found.wrong << [number, head.lines.first, body] unless body == "#{number}\n"
    sleep @pause if @pause.positive?
    return true unless head.match?(/^connection: close/i)

    found.announced += 1
    false
  rescue SystemCallError, OpenSSL::SSL::SSLError, IOError
    found.closed += 1
    false
  end
end
