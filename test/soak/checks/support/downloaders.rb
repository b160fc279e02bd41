# frozen_string_literal: true

# Slow downloaders, a separate process started by slow_downloads.rb: `downloaders.rb PORT PATH NUMBER`.
#
# Each requests the path and reads 16 KiB of the response every half second. Prints "ready" when all have their first bytes,
# works until standard input ends, then disconnects in the middle and prints the results as JSON.
require "io/wait"
require "json"
require "socket"

PIECE = 16 * 1024
SLICES = 10
ROUND = 0.5
DEADLINE = 10

# A client with a slow line and a tiny receive buffer.
class Downloader
  attr_reader :received

  def initialize(port, path)
    @socket = Socket.new(:INET, :STREAM)
    @socket.setsockopt(:SOCKET, :RCVBUF, PIECE)
    @socket.connect(Addrinfo.tcp("127.0.0.1", port))
    @socket.write("GET #{path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
    @received = 0
  end

  # Returns true if the first bytes come in time, and are correct.
  def begun?(deadline)
    return false unless @socket.wait_readable([deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max)

    take&.start_with?("HTTP/1.1 200")
  end

  def take
    piece = @socket.read_nonblock(PIECE, exception: false)
    return if piece == :wait_readable
    return leave unless piece

    @received += piece.bytesize
    piece
  rescue SystemCallError, IOError
    leave
  end

  def cut_off?
    @socket.closed?
  end

  def leave
    @socket.close
    nil
  end
end

port, path, number = ARGV
Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
clients = Array.new(Integer(number)) { Downloader.new(Integer(port), path) }
deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE
begun = clients.count { |client| client.begun?(deadline) }
$stdout.puts "ready"
$stdout.flush

due = Process.clock_gettime(Process::CLOCK_MONOTONIC)
clients.each_slice((clients.size / SLICES.to_f).ceil).to_a.cycle do |slice|
  slice.each { |client| client.take unless client.cut_off? }
  due += ROUND / SLICES
  break if $stdin.wait_readable([due - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max)
end
puts JSON.generate("begun" => begun, "cut_off" => clients.count(&:cut_off?), "least" => clients.map(&:received).min)
clients.each { |client| client.leave unless client.cut_off? }
