# frozen_string_literal: true

module Fairlead
  module Control
    # One connection of the control server: reads the head of a request, within limits of size and time, and writes the
    # response. A body is not read but thrown away.
    class Connection
      HEAD_BYTES = 8 * 1024

      # How long the head may take, how long the response may take, and how long the peer may take to close, in seconds.
      SECONDS = 5
      LINGER = 1

      # +seconds+: see SECONDS.
      def initialize(socket, seconds: SECONDS)
        @socket = socket
        @seconds = seconds
      end

      # Yields the Request, and sends the Response that the block returns.
      def answer
        request = read
        return linger(request) if request.is_a?(Response)

        linger(yield(request), body: request["content-length"] || request["transfer-encoding"]) if request
      rescue SystemCallError, IOError
        nil # the peer is gone
      rescue StandardError
        linger(Response.text(500, "The command failed"))
        raise
      end

      private

      # A Request, a Response that refuses it, or nil if the peer is gone.
      def read
        head = read_head
        head.is_a?(String) ? Request.new(head) : head
      rescue Request::Malformed
        Response.text(400, "Malformed request")
      end

      def read_head
        head = "".b
        deadline = now + @seconds
        until (ending = head.index(/\r?\n\r?\n/))
          return Response.text(431, "The head is too large") if head.bytesize >= HEAD_BYTES

          part = receive(deadline) or return
          return Response.text(408, "The head is too slow") if part == :late

          head << part
        end
        head[0, ending]
      end

      # What has come; nil at the end, :late after the deadline.
      def receive(deadline)
        loop do
          part = @socket.read_nonblock(HEAD_BYTES, exception: false)
          return part unless part == :wait_readable
          return :late unless @socket.wait_readable([deadline - now, 0].max)
        end
      end

      def write(response)
        bytes = response.to_s
        deadline = now + @seconds
        until bytes.empty?
          written = @socket.write_nonblock(bytes, exception: false)
          next bytes = bytes.byteslice(written..) unless written == :wait_writable
          return unless @socket.wait_writable([deadline - now, 0].max)
        end
      end

      # Writes the response. Closing with unread bytes would reset the connection, and the response be lost; so if there may be
      # any, they are thrown away first.
      def linger(response, body: true)
        write(response)
        return unless body

        @socket.close_write
        deadline = now + LINGER
        nil while receive(deadline).is_a?(String)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
