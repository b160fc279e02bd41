# frozen_string_literal: true

require "fairlead/process/signals" # in a trap nothing can be loaded

module Fairlead
  # A server inside another program: it serves from this process, on threads of its own, and touches neither signals nor
  # files outside what its options say. Neither configuration files nor environment variables count.
  #
  #   server = Fairlead::Server.new(app, bind: "tcp://127.0.0.1:0", threads: [0, 5])
  #   server.start
  #   server.port  # => 40123
  #   server.stop
  class Server
    # +options+: the options of the configuration file, by name; `port: 3000` and `threads: "1:5"` too. Raises
    # ConfigurationError. +log+ hears what the server does.
    def initialize(app, log: EventLog.new(quiet: true), **options)
      @service = Service.new(Configuration.from_options(options), log: log, app: app)
      @engine = Engine.new(@service)
      @ended = Thread::Queue.new
    end

    # Serves until another thread calls #stop. Yields itself once it serves.
    def run
      start
      yield self if block_given?
      wait
    end

    # Starts serving and returns itself; raises BindError.
    def start
      @service.open
      @engine.start
      self
    rescue StandardError
      @service.close
      raise
    end

    # Waits until the server has been stopped.
    def wait
      @ended.pop
      self
    end

    # Finishes what has arrived, for up to +seconds+ (nil: as long as it takes), and ends. False when something was cut
    # off. An exception that another thread raises here, such as that of Timeout, ends the wait and not the stop.
    #
    # Called in a request, in another block that this server runs, or in a trap, it would wait for its caller: there it
    # returns nil at once, and the server ends once the caller has returned. That a request waits for the thread that calls
    # this cannot be seen from here; such a request is cut off in the end.
    def stop(seconds = @service.configuration.shutdown_timeout)
      waits = !(Signals.in_trap? || @engine.runs?(Thread.current))
      ending = Thread.new do
        Thread.current.report_on_exception = !waits
        finish(seconds)
      end
      ending.value if waits
    end

    # The ports it listens on; those of Unix sockets are none.
    def ports = @service.listeners.ports

    def port = ports.first

    # Where it listens: "http://127.0.0.1:40123", "unix:/run/app.sock".
    def addresses = @service.listeners.map(&:to_s)

    # What the engine counts: connections, requests, threads and so on, by name.
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
