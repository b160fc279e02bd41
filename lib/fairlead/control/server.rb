# frozen_string_literal: true

module Fairlead
  module Control
    # A small HTTP server for the few who watch and steer Fairlead. It runs where there is no engine, on threads of its own,
    # and takes one short request of each connection. An object with #call(request) makes the response.
    class Server
      # How many connections there may be at once; others wait in the kernel.
      CONNECTIONS = 16
      BACKLOG = 128

      # How long responses may take to leave when the server ends, in seconds.
      GRACE = 1

      # How long it pauses when descriptors or threads are short, in seconds.
      PAUSE = 0.1

      # +address+: as for a binding. +log+: an EventLog.
      def initialize(address, app, log:)
        @address = address
        @app = app
        @log = log
        @connections = ThreadGroup.new
        @places = Thread::SizedQueue.new(CONNECTIONS)
      end

      # Opens the listeners and serves; returns at once. Raises BindError.
      def start
        @listeners = Listeners.open([@address], backlog: BACKLOG)
        @pid = Process.pid
        @ending, @end = IO.pipe
        @thread = start_thread("control") { accept_all }
        self
      end

      # The first address as it can be configured, with the port that the system has chosen.
      def url
        text = @listeners.first.to_s
        text.start_with?("unix:") ? text.sub("unix:", "unix://") : text.sub("http:", "tcp:")
      end

      # Stops listening; responses that are on their way are sent.
      def close
        return unless @thread && @pid == Process.pid

        deadline = now + GRACE
        @end.close
        [@thread, *@connections.list].each { |thread| thread.join([deadline - now, 0].max) || thread.kill }
        @listeners.remove
        @ending.close
        @thread = nil
      end

      # Closes what a forked process has inherited; the server goes on in its parent.
      def forget
        return unless @thread && @pid != Process.pid

        [@listeners, @ending, @end].each(&:close)
        @thread = nil
      end

      private

      def accept_all
        until (readable = IO.select([*@listeners, @ending]).first).include?(@ending)
          readable.each { |listener| accept(listener) }
        end
      end

      # A connection may be gone before it is accepted.
      def accept(listener)
        @places << true
        socket, = listener.to_io.accept_nonblock(exception: false)
        return @places.pop if socket == :wait_readable

        @connections.add(start_thread("control connection") { serve(socket) })
      rescue SystemCallError, ThreadError => e
        socket.close if socket.is_a?(Socket)
        @places.pop
        @log.control_failed(e)
        sleep(PAUSE)
      end

      def serve(socket)
        Connection.new(socket).answer { |request| @app.call(request) }
      rescue StandardError => e
        @log.control_failed(e)
      ensure
        socket.close
        @places.pop
      end

      def start_thread(name, &block)
        Thread.new(&block).tap do |thread|
          thread.name = "fairlead #{name}"
          thread.report_on_exception = false
          thread.thread_variable_set(:fork_safe, true) # it has nothing that a forked process would miss
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
