# frozen_string_literal: true

require "fairlead/process/signals" # nothing can be loaded in a trap

module Fairlead
  # A server inside another program. It serves in this process, on its own threads. It handles no signals, opens only the files
  # that its options name, reads neither configuration files nor environment variables, and changes nothing that belongs to the
  # process. After its end it can start again. {Group} starts and stops several servers together.
  #
  #   server = Fairlead::Server.new(app, bind: "tcp://127.0.0.1:0", threads: [0, 5])
  #   server.start
  #   server.port  # => 40123
  #   server.stop
  class Server
    autoload :Life, "fairlead/server/life"

    # @param app [#call] a Rack application
    # @param log [Logger, EventLog, #write, #<<, nil] takes the messages of the server, and the lines of requests if they are
    #   logged without a file; nil for warnings and errors on standard error
    # @param logger [Logger, EventLog, #write, #<<, nil] the same
    # @param options [Hash{Symbol => Object}] the options of docs/guides/configuration.md by name, also `port: 3000` and
    #   `threads: "1:5"`; docs/guides/embedding.md says which have a meaning here
    # @raise [ConfigurationError] if an option is wrong, or has no meaning here
    def initialize(app, log: nil, logger: nil, **options)
      configuration = Configuration.embedded(options)
      log = EventLog.for(logger.nil? ? log : logger, configuration)
      configuration.warnings.each { |text| log.warning(text) }
      @service = Service.new(configuration, log: log, app: app)
      @starting = Mutex.new
    end

    # Serves until another thread calls {#stop}.
    #
    # @yieldparam server [Server] itself, once it serves
    # @return [Server] itself
    # @raise [BindError] if it cannot listen
    # @raise [Error] if it serves already
    def run(&block)
      start(&block)
      wait
    end

    # Opens the addresses without serving them: clients can connect, and wait for {#start}. For programs that may open a port
    # only before they change their user, for example.
    #
    # @return [Server] itself
    # @raise [BindError] if it cannot listen
    # @raise [Error] if it does already
    def listen
      @starting.synchronize { open }
      self
    end

    # Starts serving and returns. If the server is just ending, waits for its end first. If this method or the block raises, the
    # server does not run.
    #
    # @yieldparam server [Server] itself, once it serves
    # @return [Server] itself
    # @raise [BindError] if it cannot listen
    # @raise [Error] if it serves already
    def start(&block)
      @starting.synchronize do
        open unless @life&.listening?
        @life.begin
      end
      announce(&block) if block
      self
    end

    # Waits until the server has been stopped. Returns at once if it does not run.
    #
    # @return [Server] itself
    def wait
      life&.wait
      self
    end

    # Finishes requests that have arrived, and ends. An exception that another thread raises here, such as Timeout's, ends the
    # wait but not the stop.
    #
    # Called in a request, in another block that this server runs, or in a trap, it cannot wait, because the server waits for
    # its caller. It then returns nil at once, and the server ends after the caller has returned. A request that waits for the
    # calling thread cannot be detected; it is aborted in the end.
    #
    # Does nothing in a process that was forked from the one that serves.
    #
    # @param seconds [Numeric, nil] how long requests may take; nil for as long as they take
    # @param wait [Boolean] false to return nil at once
    # @return [Boolean, nil] false if requests were aborted, nil if it does not wait
    def stop(seconds = @service.configuration.shutdown_timeout, wait: true)
      life = self.life
      return true unless life

      life.ending = true
      wait &&= !inside?
      ending = Thread.new do
        Thread.current.report_on_exception = !wait
        life.finish(seconds)
      end
      ending.value if wait
    end

    # Opens the access log again, after log rotation has moved it. Not for a trap.
    #
    # @return [Boolean] false if it is not a file
    def reopen_logs = (@life.nil? || @life.here?) && @service.reopen_logs

    # Reads the certificates of `ssl://` addresses again, for new connections. Not for a trap.
    #
    # @return [Boolean] whether all could be used; the log names the failed ones, and the previous ones stay
    def reload_certificates = running? && @service.reload_certificates

    # @return [Boolean] whether it listens in this process; false again once it has been stopped
    def running? = life ? !life.over? : false

    # @return [Boolean] whether the caller is a request or another block that this server runs, or a trap, so that {#stop}
    #   cannot wait
    def inside? = Signals.in_trap? || (life ? life.inside? : false)

    # @return [Array<Integer>] the ports it listens on; Unix sockets have none
    def ports = @service.listeners.to_a.filter_map(&:port)
    alias connected_ports ports

    # @return [Integer, nil] the first of them
    def port = ports.first

    # @return [Array<String>] the addresses on which it listens: "http://127.0.0.1:40123", "unix:/run/app.sock"
    def addresses = @service.listeners.to_a.map(&:to_s)

    # @return [Hash{Symbol => Integer}] the statistics of the engine, which docs/guides/deployment.md lists; none before the start, and
    #   in a forked process
    def stats = life ? life.stats : {}

    private

    # Since the last start; nil in a process that was forked since then.
    def life = (@life if @life&.here?)

    def announce
      yield self
      announced = true
    ensure
      stop(0) unless announced
    end

    def open
      raise Error, "the server runs already" if running? && (!life.ending || inside?)

      wait
      @life = Life.new(@service)
    end
  end
end
