# frozen_string_literal: true

module Fairlead
  module Control
    # What runs beside the main loop of the only process: the control server, the health endpoints, the state
    # file, what systemd is told, the file that restarts, and the certificates of `acme`. A thread looks after what has no thread of its own.
    class Desk
      # How often it looks while the server is not ready, so that it is soon known to be, in seconds.
      IMPATIENCE = 0.1

      # How often it looks otherwise, in seconds.
      INTERVAL = 1

      # What is opened, in this order: the state file names the control server.
      STEPS = %i[open_health open_control write_state_file].freeze

      # How long the end waits for a look, in seconds. A disk that hangs may keep it longer.
      END_LIMIT = 5

      # +server+: a Single. +service+: its Service, which is open.
      def initialize(server, service, environment: ENV)
        @server = server
        @service = service
        @configuration = service.configuration
        @pid = Process.pid
        @pulse = Pulse.new(server)
        @systemd = Systemd.from(environment)
        @last_url, @last_token = OwnStats.take(environment)
        @lock = Mutex.new
        @wake = ConditionVariable.new
      end

      # Opens what is configured; raises BindError or StateFileError. +restarted+: after a hot restart, when no earlier program is left to
      # serve instead, the server goes on without what cannot be opened, and tries again.
      def open(restarted: false)
        @acme = Acme::Keeper.new(@server, @service) if @configuration.acme.any?
        @missing = open_all(STEPS) { |error| restarted ? @service.log.restarted_without(error) : raise(error) }
        prepare_looking
        @thread = start_thread if looks?
        self
      rescue Error, ThreadError
        close
        raise
      end

      # The server has ended.
      def close
        return unless @pid == Process.pid

        end_thread
        @acme&.close
        @reporter&.ended
        [@control, @health].compact.each(&:close)
        @state_file&.remove
      end

      # Called before this program is replaced. Returns the environment variables that tell the next one the address and the token,
      # in case that nobody has chosen them.
      def hand_over
        @acme&.close
        @reporter&.handing_over
        variables
      end

      # The environment variables by which other processes of the server find the control server.
      def variables = @control ? { OwnStats::VARIABLE => OwnStats.tell(@control.url, @token.text) } : {}

      # Whether this is the process that has the status of the server.
      def own_process? = @pid == Process.pid

      # For other processes of the server; nil if there is no control server.
      def client = @control && Client.new(@control.url, @token.text)

      # The statistics in Puma's form.
      def puma_stats = PumaStats.new(@server, max_threads: @configuration.max_threads, peaks: @peaks&.take).to_h

      # Closes what a forked process has inherited.
      def forget = [@control, @health].compact.each(&:forget)

      private

      # Yields the errors; returns the steps that have failed.
      def open_all(steps)
        steps.reject do |step|
          __send__(step)
          true
        rescue Error => e
          yield e
          false
        end
      end

      def open_missing
        missing = @missing.include?(:open_control) ? [*@missing, :write_state_file] : @missing
        @missing = open_all(STEPS & missing) { |_| nil }
        @service.log.opened_after_restart if @missing.empty?
      end

      def open_health
        return unless @configuration.health_url

        health = Health.new(@server, @pulse)
        @health = listen(@configuration.health_url, health, health)
        @service.log.health_listening(@health.url)
      end

      def open_control
        return unless @configuration.control_url || plugins?

        url = control_url
        @token = Token.new(@configuration.control_token || @last_token, url: url)
        @peaks = Peaks.new
        commands = commands(Health.new(@server, @pulse))
        @control = listen(url, commands, commands.method(:prompt))
        return unless @configuration.control_url

        @service.log.control_listening(@control.url)
        @service.log.control_open(@control.url) unless @token.text || @configuration.control_data_only?
      end

      def listen(url, app, prompt) = Server.new(url, app, prompt: prompt, log: @service.log).start

      def commands(health)
        Commands.new(@server, @service, token: @token, health: health, peaks: @peaks, data_only: @configuration.control_data_only?,
                                       certificates: @acme)
      end

      # Plugins for Puma may want to know its statistics in every process.
      def plugins? = (@configuration.plugin - Plugins::BUILT_IN).any?

      # After a hot restart `auto` means what it meant before.
      def control_url
        url = @configuration.control_url || "auto"
        return url unless url == "auto"

        @last_url.to_s.start_with?("unix:") ? AutoUrl.private_to_owner(@last_url) : AutoUrl.in(@configuration.temp_dir)
      end

      def write_state_file
        path = @configuration.state_path or return
        @state_file = StateFile.new(path, mode: @configuration.state_permission)
        @state_file.write(pid: @pid, control_url: @control&.url, control_auth_token: @token&.text, running_from: SystemText.current)
      end

      def prepare_looking
        @reporter = Systemd::Reporter.new(@systemd, @pulse) if @systemd
        @systemd&.store(@service.listeners.reject(&:kept?).each(&:keep).map(&:to_io)) if @configuration.systemd_store?
        @restart_file = RestartFile.new(@server) if @configuration.plugin.include?("tmp_restart")
      end

      # --- the thread

      def looks? = @control || @health || @reporter || @restart_file || @acme || @missing.any?

      def start_thread
        Thread.new { look_around }.tap do |thread|
          thread.name = "fairlead desk"
          thread.thread_variable_set(:fork_safe, true)
        end
      end

      def look_around
        until @ending
          look
          seconds = pause
          @lock.synchronize { @wake.wait(@lock, seconds) unless @ending }
        end
      end

      def look
        @pulse.check
        open_missing if @missing.any?
        @peaks&.look
        @reporter&.look(@server.status)
        @restart_file&.look
        @acme&.look(@server.status[:state])
      rescue StandardError, ScriptError, NoMemoryError => e
        @service.log.control_failed(e)
      end

      def pause
        return IMPATIENCE unless @server.status[:state] == :ready

        [INTERVAL, *@reporter&.interval].min
      end

      def end_thread
        @lock.synchronize do
          @ending = true
          @wake.signal
        end
        @thread&.join(END_LIMIT) || @thread&.kill
      end
    end
  end
end
