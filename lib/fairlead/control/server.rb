# frozen_string_literal: true

module Fairlead
  module Control
    # A small HTTP server for the few who watch and steer Fairlead. It runs where there is no engine, and takes one short request of
    # each connection. One thread reads all requests and sends all responses, and waits for no single peer; commands run on threads of
    # their own.
    class Server
      BACKLOG = 128

      # Connections that are accepted before the others have their turn.
      ACCEPTS = 16

      # How long responses may take to leave when the server ends, in seconds.
      GRACE = 1

      # Pause when descriptors or memory are short, in seconds.
      PAUSE = 0.1

      # Starts a thread of a control server. A forked process does not miss it.
      def self.thread(name, &block)
        Thread.new(&block).tap do |thread|
          thread.name = "fairlead #{name}"
          thread.report_on_exception = false
          thread.thread_variable_set(:fork_safe, true)
        end
      end

      # +address+: as for a binding. +app+: #call(request) makes a Response, on a thread of its own, unless +prompt+ makes one: it is
      # asked first, must not wait for anything, and returns nil for a request that may. +log+: an EventLog. +seconds+: how long a peer
      # may take.
      def initialize(address, app, log:, prompt: ->(_) {}, seconds: Connection::SECONDS)
        @address = address
        @app = app
        @prompt = prompt
        @log = log
        @connections = Connections.new(seconds: seconds)
      end

      # Opens the listeners and serves; returns at once. Raises BindError.
      def start
        load_all
        @listeners = Listeners.open([@address], backlog: BACKLOG)
        @pid = Process.pid
        @alarm, @bell = IO.pipe
        @commands = CommandThreads.new(@app, @log) { wake }
        @thread = Server.thread("control") { serve }
        self
      rescue ThreadError
        @listeners.remove
        [@alarm, @bell].each(&:close)
        raise
      end

      # The first address as it can be configured, with the port that the system has chosen.
      def url
        text = @listeners.first.to_s
        text.start_with?("unix:") ? text.sub("unix:", "unix://") : text.sub("http:", "tcp:")
      end

      # Stops listening; responses that are on their way are sent.
      def close
        return unless @thread && @pid == Process.pid

        @closing = now + GRACE
        wake
        @thread.join(GRACE + PAUSE) || @thread.kill
        @commands.kill
        @listeners.remove
        [@alarm, @bell].each(&:close)
        @thread = nil
      end

      # Closes what a forked process has inherited; the server goes on in its parent.
      def forget
        return unless @thread && @pid != Process.pid

        [@listeners, @connections, @alarm, @bell].each(&:close)
        @thread = nil
      end

      private

      # Nothing can be loaded when descriptors are short.
      def load_all
        require "json"
        [Request, Response, SystemText]
      end

      def serve
        turn until @closing
        @connections.drop_reading
        turn until @connections.empty? || now >= @closing
      ensure
        @connections.close
      end

      # Waits, and does what can be done then.
      def turn
        readable, writable, = IO.select([@alarm, *open_listeners, *@connections.readers], @connections.writers, nil, pause)
        hear if readable&.delete(@alarm)
        listeners, peers = readable.to_a.partition { |io| io.is_a?(Listener) }
        writable.to_a.each(&:write)
        peers.each { |connection| read(connection) }
        listeners.each { |listener| accept(listener) }
        @connections.sweep(now)
      rescue StandardError, ScriptError, NoMemoryError => e
        @log.control_failed(e)
        sleep(PAUSE)
      end

      # Until the next deadline; nil if there is none.
      def pause
        time = [@connections.deadline, @closing, @deaf_until].compact.min
        time && [time - now, 0].max
      end

      # Sends the responses of commands that have ended.
      def hear
        nil while @alarm.read_nonblock(1024, exception: false).is_a?(String)
        @commands.each_ended { |connection, response| connection.answer(response) if connection.running? }
      end

      def wake
        @bell.write_nonblock(".", exception: false)
      rescue IOError
        nil # the server has ended
      end

      def open_listeners
        return [] if @closing

        @deaf_until = nil if @deaf_until && now >= @deaf_until
        @deaf_until ? [] : @listeners.to_a
      end

      def accept(listener)
        ACCEPTS.times do
          socket, = listener.to_io.accept_nonblock(exception: false)
          return @failing = false if socket == :wait_readable

          read(@connections.add(socket)) # most have sent their request by now
        end
      rescue SystemCallError => e
        make_room(e)
      end

      # Says why it cannot accept, once for all failures in a row, and lets descriptors become free.
      def make_room(error)
        @log.control_failed(error) unless @failing
        @failing = true
        @connections.drop_silent
        @deaf_until = now + PAUSE
      end

      def read(connection)
        request = connection.read or return
        response = @prompt.call(request) || @commands.start(connection, request)
        connection.answer(response) if response
      rescue StandardError, ScriptError, NoMemoryError => e
        connection.answer(Response.text(500, "The command failed"))
        @log.control_failed(e)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
