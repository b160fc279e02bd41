# frozen_string_literal: true

module Fairlead
  # The plugins that are configured, but for those that are built in. They are written for Puma, so fairlead/compat/puma is loaded
  # with the first of them. They run in the process that has the application and forks the workers: a spawner, or the only process.
  class Plugins
    # What the server does itself.
    BUILT_IN = %w[systemd tmp_restart].freeze

    class << self
      # The class of a plugin; nil if it is built in. Raises PluginError.
      def load(name)
        return if BUILT_IN.include?(name)

        require "fairlead/compat/puma"
        Puma::Plugins.find(name)
      end
    end

    # +server+: has #ask. +service+: its Service.
    def initialize(server, service)
      @server = server
      @service = service
      @restarting = false
    end

    # Starts them: they register for what follows. Called before the application is loaded. Raises PluginError: a plugin refuses to
    # run with these options, or it is broken.
    def start
      @service.configuration.plugin.uniq.each do |name|
        plugin = self.class.load(name) or next
        @launcher ||= Puma::Launcher.new(@server, @service)
        start_one(name, plugin.new)
      end
      @launcher&.events&.state(:booting)
    end

    # The server is ready; what they do in the background begins.
    def booted
      tell(:running, :after_booted)
      Puma::Plugins.start_background(@service.log) if @launcher
    end

    # A hot restart begins. This process goes on until there is a new one in its place, so they are told at the end.
    def will_restart
      @restarting = true
    end

    # The server has ended, or other code has taken the place of this one.
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
