# frozen_string_literal: true

# Clients that begin with TLS and stop, a separate process started by handshakes.rb: `handshake_attackers.rb PORT HELLOS
# SILENT`.
#
# Hellos send one byte of a ClientHello per second. Silent ones complete the handshake, and then send nothing. Disconnected
# clients reconnect at once, so that the pressure stays.
require "openssl"
require_relative "attack"

CONTEXT = OpenSSL::SSL::SSLContext.new.tap { |context| context.verify_mode = OpenSSL::SSL::VERIFY_NONE }

# First bytes that OpenSSL sends.
HELLO = UNIXSocket.pair.then do |ours, theirs|
  OpenSSL::SSL::SSLSocket.new(ours, CONTEXT).connect_nonblock(exception: false)
  theirs.readpartial(1 << 14)
end

# Sends HELLO byte by byte.
class HelloTrickler < Trickler
  def initialize(port, tally)
    super(port, "", nil, tally)
  end

  private

  def connect
    @sent = 0
    super
  end

  def write = @socket.write_nonblock(HELLO[(@sent += 1) - 1].to_s, exception: false)
end

# Completes the handshake, and waits for the end of the connection.
class Silent < Trickler
  def initialize(port, tally)
    super(port, "", "", tally)
  end

  def tick
    @socket.closed? ? connect : super
  rescue OpenSSL::SSL::SSLError
    ended("reset")
  end

  private

  def write = nil

  # After a failure, it tries again in its next turn.
  def connect
    super
    @socket = OpenSSL::SSL::SSLSocket.new(@socket, CONTEXT)
    @socket.sync_close = true
    @socket.connect
  rescue OpenSSL::SSL::SSLError, SystemCallError
    @tally.ended("no handshake", now - @opened)
    @socket.close
  end
end

port, hellos, silent = ARGV.map(&:to_i)
Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
tallies = Hash.new { |hash, kind| hash[kind] = Tally.new }
clients = Array.new(hellos) { HelloTrickler.new(port, tallies[:hellos]) }
clients += Array.new(silent) { Silent.new(port, tallies[:silent]) }
attack(tallies, clients)
