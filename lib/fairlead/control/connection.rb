# frozen_string_literal: true

module Fairlead
  module Control
    # One connection of the control server, which never waits: it reads the head of one request and sends one response, as far as the
    # socket allows at the moment. A body is not read but thrown away.
    #
    #   reading ──▶ running ──▶ writing ──▶ lingering ──▶ closed
    #      └── malformed, too large, too late ─▲              ▲── the peer is gone, or too late: from everywhere but running
    class Connection
      HEAD_BYTES = 8 * 1024

      # How long the head may take, how long the response may take, and how long the peer may take to close, in seconds.
      SECONDS = 5
      LINGER = 1

      # When it has to be done with its present state (nil while a command runs), and when bytes last moved. Both are monotonic times.
      attr_reader :deadline, :active_at

      # +seconds+: see SECONDS.
      def initialize(socket, seconds: SECONDS)
        @socket = socket
        @seconds = seconds
        @head = "".b
        @active_at = now
        enter(:reading, seconds)
      end

      # For IO.select.
      def to_io = @socket

      def reads? = @state == :reading || @state == :lingering
      def writes? = @state == :writing
      def running? = @state == :running
      def closed? = @state == :closed

      # No complete request has come yet.
      def reading? = @state == :reading

      # Reads once. Returns the Request when its head is complete; from then on it runs, until #answer.
      def read
        part = @socket.read_nonblock(HEAD_BYTES, exception: false)
        return if part == :wait_readable
        return close unless part

        @active_at = now
        take(part) if reading?
      rescue Request::Malformed
        refuse(400, "Malformed request")
      rescue SystemCallError, IOError
        close
      end

      # Sends the response, or begins to.
      def answer(response)
        @unsent = response.to_s
        enter(:writing, @seconds)
        write
      end

      # Writes once.
      def write
        written = @socket.write_nonblock(@unsent, exception: false)
        return if written == :wait_writable

        @active_at = now
        @unsent = @unsent.byteslice(written..)
        finish if @unsent.empty?
      rescue SystemCallError, IOError
        close
      end

      # Its deadline has passed.
      def expire = reading? ? refuse(408, "The head is too slow") : close

      def close
        @state = :closed
        @deadline = nil
        @socket.close
        nil
      end

      private

      def enter(state, seconds)
        @state = state
        @deadline = seconds && (now + seconds)
      end

      def take(part)
        start = [@head.bytesize - 3, 0].max # the end of a head may come in parts
        @head << part
        ending = @head.index(/\r?\n\r?\n/, start)
        return (refuse(431, "The head is too large") if @head.bytesize >= HEAD_BYTES) unless ending

        request = Request.new(@head[0, ending])
        @body = !(request["content-length"] || request["transfer-encoding"]).nil?
        enter(:running, nil)
        request
      end

      def refuse(status, text)
        @body = true
        answer(Response.text(status, text))
        nil
      end

      # Closing with unread bytes would reset the connection, and the response be lost; so if there may be any, they are thrown
      # away first.
      def finish
        return close unless @body

        @socket.close_write
        enter(:lingering, LINGER)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
