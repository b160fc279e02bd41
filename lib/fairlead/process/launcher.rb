# frozen_string_literal: true

# The errors below are rescued even if no file can be opened any more.
require "fairlead/error"

module Fairlead
  # Starts the server of a configuration. For the command, opens listeners and files, forks the first process and becomes the
  # native supervisor. For an application that is an object, supervises from this process, and serves here if there are no
  # workers. In a program that a supervisor has started to load the application again, does that part instead.
  class Launcher
    class << self
      # The launcher of this process, or of the process that has forked it. nil before the start, and in a program that only
      # contains a Fairlead::Server.
      attr_accessor :current

      # The title of the process that represents the server.
      def title(configuration)
        addresses = configuration.bind.map { |address| address.partition("?").first.b }
        "fairlead #{VERSION} (#{addresses.join(" ")}) [#{configuration.tag.b}]"
      end
    end

    attr_reader :configuration

    # The id of the process that has the application and forks the workers, or of the sole process.
    attr_reader :pid

    # +app+: an application that replaces the one of the rackup file. +log+: an EventLog, a Logger or any log that Server takes;
    # it replaces the configured log.
    def initialize(configuration, app: nil, log: nil)
      @configuration = configuration
      @given = !app.nil?
      @app = app || configuration.app
      @log = log ? EventLog.for(log, configuration) : EventLog.of(configuration)
    end

    # Serves until the server is asked to end; returns the exit status.
    def run
      note_restart_command
      Launcher.current = self
      link = Spawner.inherited_link
      @pid = Process.pid
      prepare_process
      redirection = Redirection.start(@configuration)
      announce_settings
      @service = Service.new(@configuration, log: @log, app: @app, redirection: redirection, shares_certificates: true)
      link ? join(link) : be_server
    rescue *DescriptorError::SYSTEM_ERRORS => e
      raise DescriptorError, e
    rescue ThreadError => e
      raise unless e.message.start_with?(ThreadLimitError::START)

      raise ThreadLimitError, e
    ensure
      Launcher.current = nil
    end

    # Asks the server to end, from any thread and, except in workers, from a trap.
    def stop = @server&.stop_later

    # Its open listeners.
    def listeners = @service ? @service.listeners.to_a : []

    # The ports of the listeners; Unix sockets have none.
    def connected_ports = listeners.filter_map(&:port)

    # This process has become a spawner or a worker. +role+: asks the supervisor to end, instead of this launcher.
    def continue_as(role)
      join_publishers
      @server = role
      @pid = Process.pid unless role.is_a?(Worker)
    end

    private

    # True if this process itself serves: it has been given an application, and there are no workers.
    def resident? = @given && !@configuration.supervised?

    def be_server
      start = FirstStart.new(@service)
      inherited = Inherited.take
      start.open(inherited) { check(inherited) }
      Control::OwnStats.know(*start.control)
      return supervise(start, start.stay { |link, shared| Resident.new(@service, link, shared, 1) }) if resident?

      start.fork_first { |link, shared| (@configuration.supervised? ? Spawner : Sole).new(@service, link, shared, 1) }
      @given ? supervise(start) : start.exec
    ensure
      start&.close
      Control::OwnStats.know
    end

    # +role+: the Role of this process besides supervising.
    def supervise(start, role = nil)
      role ? join_publishers : PubSub::Membership.leave
      @server = start.embed
      status = @server.run(role)
      raise SignalException, "SIGTERM" if @server.ended_by_term?

      status
    end

    def join_publishers = PubSub::Membership.join(@configuration.publish_socket)

    # Joins a running server.
    def join(link)
      joining = Joining.new(link, history_bytes: @configuration.history_bytes)
      joining.watch_supervisor
      joining.open(@service) { |inherited| check(inherited) }
      Control::OwnStats.know(*joining.control)
      exit(Role.run(joining.role))
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
      Process.setproctitle(self.class.title(@configuration))
    end

    # Comes after the redirection, so that the text is in the files.
    def announce_settings
      @configuration.warnings.each { |text| @log.warning(text) }
      @log.configuration(@configuration) if @configuration.log_config?
      @log.configured(@configuration)
    end

    def check(inherited)
      Preflight.new(@configuration, app: @app, activated: inherited.activated?) { |binding| inherited.covers?(binding) }.run
      @log.files_only(@configuration) if !@app && AppLoader.files_only?(@configuration)
    end
  end
end
