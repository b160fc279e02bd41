# frozen_string_literal: true

# The errors below are rescued even where no file can be opened any more.
require "fairlead/error"

module Fairlead
  # Starts the server that a configuration describes, as one process or as a supervisor with workers, and cleans up after
  # it. In a process that a supervisor has started as a spawner, does that part instead.
  class Launcher
    class << self
      # The launcher of this process, or of the process that has forked it. nil before the start, and in a program that only
      # contains a Fairlead::Server.
      attr_accessor :current
    end

    attr_reader :configuration

    # What runs beside the server: the Control::Desk. nil before it is open, and in a process that was started as a spawner.
    attr_reader :desk

    # The id of the process that has the application and forks the workers, or of the only process.
    attr_reader :pid

    # +app+: an application to serve instead of that of the rackup file. +log+: an EventLog, a Logger or what Server takes, in
    # place of the log of the configuration.
    def initialize(configuration, app: nil, log: nil)
      @configuration = configuration
      @app = app || configuration.app
      @log = log ? EventLog.for(log, configuration) : EventLog.of(configuration)
    end

    # Serves until the server is asked to end; returns the exit status.
    def run
      EarlySignals.hold_back
      note_restart_command
      Launcher.current = self
      link = Spawner.inherited_link
      @pid = Process.pid
      prepare_process
      redirection = Redirection.start(@configuration)
      announce_settings
      @service = Service.new(@configuration, log: @log, app: @app, redirection: redirection)
      link ? be_spawner(link) : be_server
    rescue *DescriptorError::SYSTEM_ERRORS => e
      raise DescriptorError, e
    rescue ThreadError => e
      raise unless e.message.start_with?(ThreadLimitError::START)

      raise ThreadLimitError, e
    ensure
      Launcher.current = nil
    end

    # Asks the server to end, from any thread and, but for workers, from a trap.
    def stop = @server&.stop_later

    # What it listens on, once it does.
    def listeners = @service ? @service.listeners.to_a : []

    # Their ports; Unix sockets have none.
    def connected_ports = listeners.filter_map(&:port)

    # This process is a spawner or a worker now. +role+: asks the supervisor to end in its place.
    def continue_as(role)
      @server = role
      @pid = Process.pid if role.is_a?(Spawner)
    end

    private

    def be_server
      inherited = Inherited.take
      check(inherited)
      pid_file = write_pid_file(inherited) if @configuration.pid_file
      @service.open(inherited: inherited)
      @desk = Control::Desk.new(server, @service)
      @desk.open(restarted: inherited.handed_down?)
      status = server.run
      @log.stopped
      raise SignalException, "SIGTERM" if server.ended_by == :TERM && @configuration.raise_exception_on_sigterm?

      status
    ensure
      @desk&.close
      @service.close
      pid_file&.remove
      @configuration.hooks.run(:after_stopped, log: @log) if status && !@configuration.supervised?
    end

    # After a hot restart no earlier program is left to serve instead.
    def write_pid_file(inherited)
      file = PidFile.new(SystemText.absolute(@configuration.pid_file))
      file.write
      file
    rescue PidFileError => e
      raise unless inherited.handed_down?

      @log.restarted_without(e)
      file
    end

    # The supervisor has sent what it shares.
    def be_spawner(link)
      Control::OwnStats.remember
      link.to_io.wait_readable
      message = link.receive
      raise Error, "the supervisor is gone" unless message&.kind == :inherit

      number, layout, *bindings = message.fields
      refuse_other_version(layout)
      shared = message.ios.shift(Native::Shared::DESCRIPTORS)
      kept = Tls::Offers.handed_over(message.ios.pop) if message.ios.size > bindings.size
      @service.adopt(message.ios, bindings, kept: kept)
      exit(Role.run(Spawner.new(@service, link, Native::Shared.adopt(Supervisor::SLOTS, shared.map(&:fileno)), Integer(number, 10), fresh: true)))
    end

    def refuse_other_version(layout)
      return if layout == Native::Shared::LAYOUT

      raise Error, "the new code has Fairlead #{VERSION}, which cannot share with what runs; only a hot restart (USR2) can change that"
    end

    def note_restart_command
      command = RestartCommand.note
      command.words = @configuration.restart_command if @configuration.restart_command
    end

    # Output of the application is written at once, even to a file or a pipe.
    def prepare_process
      $stdout.sync = $stderr.sync = true
      Dir.chdir(@configuration.directory)
      ENV["RACK_ENV"] = @configuration.environment
      addresses = @configuration.bind.map { |address| address.partition("?").first.b }
      Process.setproctitle("fairlead #{VERSION} (#{addresses.join(" ")}) [#{@configuration.tag.b}]")
    end

    # Behind the redirection, so that it stands in the files.
    def announce_settings
      @configuration.warnings.each { |text| @log.warning(text) }
      @log.configuration(@configuration) if @configuration.log_config?
      @log.configured(@configuration)
    end

    def check(inherited)
      Preflight.new(@configuration, app: @app, activated: inherited.activated?) { |binding| inherited.covers?(binding) }.run
      @log.files_only(@configuration) if !@app && AppLoader.files_only?(@configuration)
    end

    def server
      @server ||= @configuration.supervised? ? Supervisor.new(@service, handover: Supervisor::Handover.take) : Single.new(@service)
    end
  end
end
