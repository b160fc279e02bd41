# frozen_string_literal: true

module Fairlead
  # Starts the server that a configuration describes, as one process or as a supervisor with workers, and cleans up after
  # it.
  class Launcher
    class << self
      # The launcher of this process, or of the process that has forked it. nil before the start, and in a program that only
      # contains a Fairlead::Server.
      attr_accessor :current
    end

    attr_reader :configuration

    # The id of the process that it runs in, which is the parent of the workers.
    attr_reader :pid

    # +app+: an application to serve instead of that of the rackup file.
    def initialize(configuration, app: nil)
      @configuration = configuration
      @app = app || configuration.app
      @log = EventLog.new(quiet: configuration.quiet?, prefix: configuration.supervised?)
    end

    # Serves until the server is asked to end; returns the exit status.
    def run
      Launcher.current = self
      @pid = Process.pid
      prepare_process
      pid_file = PidFile.write(@configuration.pid_file) if @configuration.pid_file
      @service = Service.new(@configuration, log: @log, app: @app).open
      status = server.run
      @log.stopped
      status
    rescue *DescriptorError::SYSTEM_ERRORS => e
      raise DescriptorError, e
    ensure
      @service&.close
      pid_file&.remove
      @configuration.hooks.run(:after_stopped, log: @log) if status
      Launcher.current = nil
    end

    # Asks the server to end, from any thread and from a trap.
    def stop = @server&.stop_later

    private

    # Output of the application is written at once, even to a file or a pipe.
    def prepare_process
      $stdout.sync = $stderr.sync = true
      Dir.chdir(@configuration.directory)
      ENV["RACK_ENV"] = @configuration.environment
      Process.setproctitle("fairlead #{VERSION} (#{@configuration.bind.join(" ")}) [#{@configuration.tag}]")
      @configuration.warnings.each { |text| @log.warning(text) }
      @log.configuration(@configuration) if @configuration.log_config?
      check_app unless @app
    end

    def check_app
      AppLoader.check(@configuration)
      @log.files_only(@configuration) if AppLoader.files_only?(@configuration)
    end

    def server
      @server ||= (@configuration.supervised? ? Supervisor : Single).new(@service)
    end
  end
end
