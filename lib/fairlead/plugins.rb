# frozen_string_literal: true

module Fairlead
  # The configured plugins that are not built in. They are written for Puma, so the first plugin loads fairlead/compat/puma.
  # They run in the process that has the application and forks the workers: a spawner, or the sole process.
  class Plugins
    # The plugins that the server replaces by its own functions.
    BUILT_IN = %w[systemd tmp_restart].freeze

    class << self
      # The class of a plugin; nil if it is built in. Raises PluginError.
      def load(name)
        return if BUILT_IN.include?(name)

        require_relative "compat/puma"
        Puma::Plugins.find(name)
      end
    end

    # Puma's launcher; nil if there is no plugin for Puma.
    attr_reader :launcher

    # +server+: has #ask. +service+: its Service.
    def initialize(server, service)
      @server = server
      @service = service
      @restarting = false
    end

    # Starts the plugins: they register for later events. Called before the application is loaded. Raises PluginError if a
    # plugin refuses to run with these options, or is broken.
    def start
      @service.configuration.plugin.uniq.each do |name|
        plugin = self.class.load(name) or next
        @launcher ||= Puma::Launcher.new(@server, @service)
        start_one(name, plugin.new)
      end
      @launcher&.events&.state(:booting)
    end

    # The server is ready; the background work of the plugins begins.
    def booted
      tell(:running, :after_booted)
      Puma::Plugins.start_background(@service.log) if @launcher
    end

    # A hot restart begins. This process goes on until a new one has replaced it, so the plugins are told at the end.
    def will_restart
      @restarting = true
    end

    # The server has ended, or other code has replaced this process.
    def stopped
      tell(:restart, :before_restart) if @restarting
      tell(:stop, :after_stopped)
      return unless @launcher

      @launcher.events.state(:done)
      Puma::Plugins.stop_background
    end

    private

    def tell(state, event)
      return unless @launcher

      @launcher.events.state(state)
      @launcher.events.fire(event)
    end

    def start_one(name, plugin)
      plugin.start(@launcher) if plugin.respond_to?(:start)
    rescue StandardError, ScriptError => e
      @service.log.plugin_failed(name, e)
      raise PluginError.new(name, Error.sum_up(e))
    end
  end
end
