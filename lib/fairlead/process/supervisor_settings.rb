# frozen_string_literal: true

require "json"

module Fairlead
  # The configuration of a server as plain data for the supervisor: crates/supervisor/src/settings.rs reads it. Open listeners
  # are named by their places in a list of descriptors that is sent with it.
  class SupervisorSettings
    # The version of all messages between supervisor, spawners and workers.
    PROTOCOL = 1

    # The file that the plugin `tmp_restart` watches.
    RESTART_FILE = "tmp/restart.txt"

    # The listeners that the settings name, in that order.
    attr_reader :ios

    # +service+: the Service. +pid+: the id of the supervisor. +sockets+: the Control::Sockets; nil if the supervisor keeps all
    # its addresses, including the addresses for clients.
    def initialize(service, pid:, sockets: nil)
      @service = service
      @configuration = service.configuration
      @ios = []
      @settings = { **versions, **process(pid), **files, **life, listeners: [], control: nil, health: nil, publishing: nil }
      name_listeners(sockets) if sockets
    end

    # The input of JSON.generate.
    def to_h = @settings

    # The settings as JSON, in a file in memory.
    def file = IO.for_fd(Native.memory_file("fairlead settings", JSON.generate(@settings)))

    private

    # Bytes as characters of the same numbers, because JSON has no bytes. String#encode would load its encodings: a signal
    # meanwhile is a TypeError.
    def bytes(text) = text&.unpack("C*")&.pack("U*")

    def versions
      {
        protocol: PROTOCOL, version: VERSION, layout: Native::Shared::LAYOUT,
        ruby: { engine: RUBY_ENGINE, version: RUBY_VERSION, patchlevel: RUBY_PATCHLEVEL }
      }
    end

    def process(pid)
      { tag: bytes(@configuration.tag), command: command, limits: limits, ready: SystemText.shown(@service.log.ready_text(@configuration, pid: pid)) }
    end

    def command
      command = RestartCommand.current
      {
        words: command.words_beside.map { |word| bytes(word) }, folder: bytes(command.folder),
        environment: command.environment.map { |pair| pair.map { |text| bytes(text) } }
      }
    end

    def limits
      names = %i[workers shutdown_timeout long_drain drain_delay worker_timeout worker_boot_timeout load_timeout]
      { **names.to_h { |name| [name, @configuration[name]] }, settle_time: @configuration.worker_settle_time }
    end

    def files
      state = @configuration.state_path
      {
        pid_file: absolute(@configuration.pid_file), log: log,
        state_file: state && { path: absolute(state), mode: @configuration.state_permission, running_from: bytes(SystemText.current) },
        restart_file: (absolute(RESTART_FILE) if @configuration.plugin.include?("tmp_restart"))
      }
    end

    def absolute(path) = path && bytes(SystemText.absolute(path))

    def log
      redirected = Redirection.paths(@configuration)
      {
        json: @configuration.log_format == :json, quiet: @configuration.quiet?, debug: @configuration.debug?,
        prefix: @configuration.supervised?, by_ruby: !@service.log.plain?,
        stdout: bytes(redirected[:redirect_stdout]), stderr: bytes(redirected[:redirect_stderr]), access: bytes(@service.access_log_file&.path)
      }
    end

    def life
      {
        tls: @service.tls.any?, systemd_store: @configuration.systemd_store?, refork_after: @configuration.refork_after,
        idle_timeout: @configuration.idle_timeout || 0, recycling: recycling, pausing: pausing, max_threads: @configuration.max_threads,
        raise_on_term: @configuration.raise_exception_on_sigterm?
      }
    end

    def recycling
      {
        max_memory: @configuration.worker_max_memory, max_requests: @configuration.worker_max_requests,
        max_age: @configuration.worker_max_age, jitter: @configuration.worker_max_jitter
      }
    end

    def pausing = { timeout: @configuration.pause_timeout, limit: @configuration.pause_limit }

    # --- listeners

    def name_listeners(sockets)
      @settings[:listeners] = @service.listeners.map { |listener| describe(listener, listener.known_as) }
      @settings[:health] = sockets.health && describe(sockets.health, sockets.health.binding)
      @settings[:publishing] = sockets.publishing && describe(sockets.publishing, sockets.publishing.binding)
      return unless sockets.control

      @settings[:control] = {
        listener: describe(sockets.control, sockets.control.binding), url: SystemText.shown(sockets.url), token: sockets.token,
        data_only: @configuration.control_data_only?
      }
    end

    # Without a descriptor, it is a listener of the supervisor.
    def describe(listener, binding)
      descriptor = @ios.push(listener).size - 1 unless listener.is_a?(Control::Sockets::Present)
      {
        descriptor: descriptor, binding: bytes(binding.to_s), address: SystemText.shown(listener.to_s), file: bytes(listener.file),
        kept: listener.kept?
      }
    end
  end
end
