# frozen_string_literal: true

module Fairlead
  module Control
    # The open connections of a control server. Only the thread of the server knows them. When there are too many, the connection that
    # has been silent for longest is closed: a probe that sends its request at once is never that.
    class Connections
      # Open connections; more than there may be commands.
      LIMIT = 64

      # +seconds+: how long a peer may take for its request, and for the response.
      def initialize(seconds: Connection::SECONDS)
        @seconds = seconds
        @all = []
      end

      # Makes room for the socket and returns its Connection.
      def add(socket)
        drop_silent if @all.size >= LIMIT
        Connection.new(socket, seconds: @seconds).tap { |connection| @all << connection }
      end

      # Closes the connection that has been silent for longest. Returns nil if there is none but those with a command.
      def drop_silent
        connection = @all.reject(&:running?).min_by(&:active_at) or return
        connection.close
        sweep
      end

      # Closes the connections that have not sent a request.
      def drop_reading
        @all.select(&:reading?).each(&:close)
        sweep
      end

      def readers = @all.select(&:reads?)

      def writers = @all.select(&:writes?)

      def empty? = @all.empty?

      # The next deadline; nil if there is none.
      def deadline = @all.filter_map(&:deadline).min

      # Ends what is late, and forgets what is closed.
      def sweep(now = nil)
        @all.each { |connection| connection.expire if connection.deadline && connection.deadline <= now } if now
        @all.reject!(&:closed?)
        self
      end

      def close
        @all.each(&:close)
        @all.clear
      end
    end
  end
end
