# frozen_string_literal: true

require "fairlead/process/signals" # in a trap nothing can be loaded

module Fairlead
  # A server inside another program. It serves in this process, on threads of its own. It handles no signals, opens only
  # the files that its options name, and reads neither configuration files nor environment variables.
  #
  #   server = Fairlead::Server.new(app, bind: "tcp://127.0.0.1:0", threads: [0, 5])
  #   server.start
  #   server.port  # => 40123
  #   server.stop
  class Server
    # @param app [#call] a Rack application
    # @param log [EventLog] takes the messages of the server
    # @param options [Hash{Symbol => Object}] the options of docs/configuration.md by name, also `port: 3000` and
    #   `threads: "1:5"`
    # @raise [ConfigurationError] if an option is wrong
    def initialize(app, log: EventLog.new(quiet: true), **options)
      @service = Service.new(Configuration.from_options(options), log: log, app: app)
      @engine = Engine.new(@service)
      @ended = Thread::Queue.new
    end

    # Serves until another thread calls {#stop}.
    #
    # @yieldparam server [Server] itself, once it serves
    # @return [Server] itself
    # @raise [BindError] if it cannot listen
    def run
      start
      yield self if block_given?
      wait
    end

    # Starts serving and returns.
    #
    # @return [Server] itself
    # @raise [BindError] if it cannot listen
    def start
      @service.open
      @engine.start
      @service.listeners.close
      self
    rescue StandardError
      @service.close
      raise
    end

    # Waits until the server has been stopped.
    #
    # @return [Server] itself
    def wait
      @ended.pop
      self
    end

    # Finishes what has arrived, and ends. An exception that another thread raises here, such as Timeout's, ends the wait but
    # not the stop.
    #
    # Called in a request, in another block that this server runs, or in a trap, it cannot wait, because the server waits for
    # its caller. It then returns nil at once, and the server ends after the caller has returned. A request that waits for the
    # calling thread cannot be detected; it is aborted in the end.
    #
    # @param seconds [Numeric, nil] how long requests may take; nil for as long as they take
    # @return [Boolean, nil] false if requests were aborted, nil if it does not wait
    def stop(seconds = @service.configuration.shutdown_timeout)
      waits = !(Signals.in_trap? || @engine.runs?(Thread.current))
      ending = Thread.new do
        Thread.current.report_on_exception = !waits
        finish(seconds)
      end
      ending.value if waits
    end

    # @return [Array<Integer>] the ports it listens on; Unix sockets have none
    def ports = @service.listeners.ports

    # @return [Integer, nil] the first of them
    def port = ports.first

    # @return [Array<String>] where it listens: "http://127.0.0.1:40123", "unix:/run/app.sock"
    def addresses = @service.listeners.map(&:to_s)

    # @return [Hash{Symbol => Integer}] the statistics of the engine, which docs/deployment.md lists
    def stats = @engine.stats

    private

    def finish(seconds)
      @engine.drain(seconds)
    ensure
      @service.close
      @ended.close
    end
  end
end
