# frozen_string_literal: true

module Fairlead
  module PubSub
    # Publishes through a server of this machine, from a process beside it: a job, a console, another program.
    #
    #   server = Fairlead::PubSub::RunningServer.of("/srv/shop")
    #   server.publish("orders", "new")           # => true
    #   Fairlead::PubSub.default = server         # for Fairlead.publish, too
    #
    # The server and this process must belong to the same user; root may publish, too. There is one connection for each process,
    # opened when it is first used, and again after the server has restarted or this process has been forked. {#publish} returns
    # when the message is on its way to all workers. If the server is not there, or does not answer within {TIMEOUT}, the message
    # is lost: {#publish} returns false, and the log says so once for the whole outage.
    class RunningServer < Engine
      autoload :Connection, "fairlead/realtime/pub_sub/running_server/connection"

      # Seconds that a message may take.
      TIMEOUT = 5

      # Seconds after such a timeout in which messages fail at once, so that a server that hangs delays a process once and not for
      # each of its messages.
      PAUSE = 5

      # The longest channel and message together, in bytes.
      LONGEST = (16 * 1024**2) - 5

      # @param root [String, Pathname] the folder of the application
      # @param logger [Logger, nil] as for {#initialize}
      # @return [RunningServer] for the server of that application: on $FAIRLEAD_PUBLISH_SOCKET, or on its usual publish socket
      # @raise [ArgumentError] if this variable says that there is none
      def self.of(root, logger: nil)
        path = PublishSocket.find(root) || raise(ArgumentError, "#{PublishSocket::VARIABLE} says that there is no publish socket")
        new(path, logger: logger)
      end

      # @return [String] the absolute path of the publish socket
      attr_reader :path

      # Connects when it is first used.
      #
      # @param path [String, Pathname] the publish socket
      # @param logger [Logger, nil] for outages; nil for the log of Fairlead
      def initialize(path, logger: nil)
        super()
        @path = SystemText.absolute(path.to_s)
        @log = EventLog.new(logger: logger) if logger
        @lock = Mutex.new
        @lost = 0
      end

      # @param channel [String]
      # @param message [String]
      # @param history [Boolean] whether the message is also for the history (see {HISTORY})
      # @return [Boolean] false if a worker has not got the message
      # @raise [ArgumentError] if the channel begins with `fairlead/`
      def publish(channel, message, history: false)
        Subscription.channel_of_app(channel)
        return refuse(channel, message) if channel.bytesize + message.bytesize > LONGEST

        missed = @lock.synchronize { exchange([channel, message, history ? Connection::HISTORY : 0]) }
        log.workers_missed(path, missed) if missed.positive?
        missed.zero?
      rescue Unreachable
        false
      end

      # Closes the connection of this process. It is opened again when it is used.
      #
      # @return [void]
      def close = @lock.synchronize { disconnect }

      def inspect = "#<#{self.class} #{path}>"

      # The server is not there, or does not answer.
      class Unreachable < Error; end
      private_constant :Unreachable

      private

      # Returns the number of workers that have not got the message.
      def exchange(request)
        raise Unreachable if @paused_until && Clock.now < @paused_until

        missed = attempt(request, Clock.now + TIMEOUT)
        recovered
        missed
      rescue Unreachable => e
        failed(e)
        raise
      rescue Connection::Closed, Connection::Refused, SystemCallError => e
        failed(Unreachable.new(reason(e)))
        raise Unreachable
      end

      # A server that hands its socket over to another program closes connections between two messages, so a message without a
      # reply was not taken.
      def attempt(request, deadline)
        deliver(request, deadline)
      rescue Connection::Closed
        deliver(request, deadline)
      end

      def deliver(request, deadline)
        missed = connection(deadline).publish(*request, deadline)
      ensure
        disconnect unless missed # another thread may have interrupted it
      end

      def connected? = @connection && @pid == Process.pid

      def connection(deadline)
        return @connection if connected?

        disconnect
        @connection = Connection.new(path, deadline)
        @pid = Process.pid
        @connection
      end

      def disconnect
        @connection&.close
        @connection = nil
      end

      def reason(error)
        case error
        when Errno::ENOENT, Errno::ECONNREFUSED
          "no server listens on #{path}: start it, or set publish_socket for both; messages of this process are lost meanwhile"
        when Errno::ETIMEDOUT
          @paused_until = Clock.now + PAUSE
          "the server on #{path} has not taken a message within #{TIMEOUT} s; messages of this process are lost meanwhile"
        else
          "the server on #{path} cannot be reached: #{Error.reason(error)}; messages of this process are lost meanwhile"
        end
      end

      def failed(error)
        log.server_lost(error) if @lost.zero?
        @lost += 1
      end

      def recovered
        @paused_until = nil
        log.server_back(path, @lost) if @lost.positive?
        @lost = 0
      end

      def refuse(channel, message)
        log.server_lost(Unreachable.new("a message of #{message.bytesize} bytes to #{SystemText.shown(channel)} is lost: no more than " \
                                        "#{LONGEST} bytes go through #{path}"))
        false
      end

      def log = @log || Background.current.log
    end
  end
end
