# frozen_string_literal: true

module Puma
  # The argument of a plugin's start, with the interface of Puma's launcher.
  class Launcher
    attr_reader :events, :log_writer, :config

    # +server+: has #ask. +service+: its Service.
    def initialize(server, service)
      @server = server
      @service = service
      @events = Events.new(service.log)
      @log_writer = LogWriter.new(service.log)
      @config = Config.new(service.configuration)
    end

    def options = config.options

    def environment = config.environment

    def restart_dir = Dir.pwd

    def stop = ask(:stop)
    def halt = ask(:halt)
    def restart = ask(:restart)
    def phased_restart = ask(:phased_restart)

    # The ports of the server.
    def connected_ports = @service.listeners.ports

    def close_binder_listeners = @service.listeners.close

    def stats = Puma.stats_hash

    # Yields the name and the backtrace of each thread of this process.
    def thread_status
      Fairlead::Backtraces.all.each { |thread| yield "Thread: #{thread[:name]}", thread[:backtrace] }
    end

    private

    # Puma returns true if it carries out the request.
    def ask(what)
      @server.ask(what)
      true
    end
  end
end
