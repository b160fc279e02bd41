# frozen_string_literal: true

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
    # off. Not to be called in a trap, where nothing may be waited for: start a thread there.
    def stop(seconds = @service.configuration.shutdown_timeout)
      @engine.drain(seconds)
    ensure
      @service.close
      @ended.close
    end

    # The ports it listens on; those of Unix sockets are none.
    def ports = @service.listeners.ports

    def port = ports.first

    # Where it listens: "http://127.0.0.1:40123", "unix:/run/app.sock".
    def addresses = @service.listeners.map(&:to_s)

    # What the engine counts: connections, requests, threads and so on, by name.
    def stats = @engine.stats
  end
end
