# frozen_string_literal: true

# Slow downloaders, a process of its own started by slow_downloads.rb: `downloaders.rb PORT PATH NUMBER`.
#
# Each asks for the path and takes 16 KiB of the answer every half a second. Prints "ready" when all have had their first
# bytes, then works until standard input ends, then leaves in the middle and prints as JSON what became of them.
require "io/wait"
require "json"
require "socket"

PIECE = 16 * 1024
SLICES = 10
ROUND = 0.5
DEADLINE = 10

# A client behind a thin line: its system takes next to nothing for it in advance.
class Downloader
  attr_reader :received

  def initialize(port, path)
    @socket = Socket.new(:INET, :STREAM)
    @socket.setsockopt(:SOCKET, :RCVBUF, PIECE)
    @socket.connect(Addrinfo.tcp("127.0.0.1", port))
    @socket.write("GET #{path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
    @received = 0
  end

  # Whether the first bytes come in time, and are a good answer's.
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
