# frozen_string_literal: true

require "socket"

module Fairlead
  module PubSub
    class RunningServer
      # A connection to the publish socket. crates/supervisor/src/publishing/frame.rs describes the messages. Waits until a
      # deadline, and then raises Errno::ETIMEDOUT. After an exception it must not be used again.
      class Connection
        # The server has closed the connection.
        class Closed < StandardError; end

        # It is not the server of this user, or speaks another protocol.
        class Refused < StandardError; end

        # Bytes of a reply.
        REPLY = 5

        # Seconds between two attempts while the server has no room for another connection.
        STEP = 0.01

        # Most bytes of one write.
        PART = 256 * 1024

        # The flag of a message that is also for the history.
        HISTORY = 1

        TAKEN = 0
        NOT_TAKEN = 1

        # Raises SystemCallError or Refused. +deadline+: of Clock.
        def initialize(path, deadline)
          stat = File.stat(path)
          raise Refused, "it is not a socket" unless stat.socket?

          check_owner(stat.uid)
          @socket = Socket.new(:UNIX, :STREAM)
          connect(Addrinfo.unix(path), deadline)
          check_owner(@socket.getpeereid.first)
          connected = true
        rescue ArgumentError => e # the path is too long
          raise Refused, e.message
        ensure
          close unless connected
        end

        # Returns the number of workers that did not take the message. Raises Closed, Refused or SystemCallError.
        def publish(channel, message, flags, deadline)
          write([5 + channel.bytesize + message.bytesize, flags, channel.bytesize].pack("NCN") << channel.b << message.b, deadline)
          outcome, number = read(deadline).unpack("CN")
          case outcome
          when TAKEN then 0
          when NOT_TAKEN then number
          else raise Refused, "it answers #{outcome}, which this version of Fairlead does not know"
          end
        rescue Errno::EPIPE, Errno::ECONNRESET, Errno::ENOTCONN, EOFError => e
          raise Closed, "it has closed the connection", cause: e
        end

        # A forked process closes its copy alone.
        def close = @socket&.close

        private

        # Root serves every user, and may use every server.
        def check_owner(user)
          return if [0, Process.euid].include?(user) || Process.euid.zero?

          raise Refused, "it belongs to another user"
        end

        # The queue of the listener may be full.
        def connect(address, deadline)
          @socket.connect_nonblock(address, exception: false) == :wait_writable && wait(deadline) { |rest| @socket.wait_writable(rest) }
        rescue Errno::EAGAIN
          wait(deadline) { |rest| sleep([rest, STEP].min) || true }
          retry
        end

        def write(bytes, deadline)
          sent = 0
          while sent < bytes.bytesize
            count = @socket.write_nonblock(bytes.byteslice(sent, PART), exception: false)
            count == :wait_writable ? wait(deadline) { |rest| @socket.wait_writable(rest) } : sent += count
          end
        end

        def read(deadline)
          reply = "".b
          while reply.bytesize < REPLY
            part = @socket.read_nonblock(REPLY - reply.bytesize, exception: false)
            raise EOFError if part.nil?

            part == :wait_readable ? wait(deadline) { |rest| @socket.wait_readable(rest) } : reply << part
          end
          reply
        end

        def wait(deadline)
          rest = deadline - Clock.now
          raise Errno::ETIMEDOUT unless rest.positive? && yield(rest)
        end
      end
    end
  end
end
