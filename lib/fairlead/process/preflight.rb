# frozen_string_literal: true

module Fairlead
  # Finds problems that would keep a server from starting, as far as they are known without listening, loading the application
  # or changing anything. `--check` and each start run it, so that both refuse the same. The start itself checks everything that
  # may change until then: an address in use by another process, the pid file of a running server.
  class Preflight
    # The Preflight of `--check`.
    def self.of_check(configuration) = new(configuration, app: configuration.app, by_hand: true)

    # +app+: an application that replaces the one of the rackup file. +by_hand+: true if a user only asks, so that optional
    # parts are refused, too. +activated+: true if systemd has passed sockets, which may replace all addresses. The block
    # returns true for an open Binding. The current folder is the folder of the configuration.
    def initialize(configuration, app: nil, by_hand: false, activated: false, &open)
      @configuration = configuration
      @app = app
      @by_hand = by_hand
      instead = activated && configuration.bind_to_activated_sockets == :only
      @addresses = Configuration::Addresses.new(configuration) { |binding| instead || open&.call(binding) }
    end

    # Raises an Error.
    def run
      AppLoader.check(@configuration) unless @app
      problems = Configuration::Folders.new(@configuration, @addresses.sockets).problems
      problems += @addresses.problems if problems.empty?
      problems += page_problems
      problems += acme_problems if @by_hand
      raise ConfigurationError, problems if problems.any?

      PidFile.check(@configuration.pid_file) if @configuration.pid_file
      @configuration.plugin.uniq.each { |name| load_plugin(name) }
    end

    private

    # A configuration file has already loaded the plugins that it names. Only loading finds a plugin in a gem.
    def load_plugin(name)
      Plugins.load(name)
    rescue Error
      raise
    rescue StandardError, ScriptError => e
      raise PluginError.new(name, Error.sum_up(e))
    end

    def page_problems
      @configuration.error_page.filter_map do |_, path|
        problem = Options::Types::ErrorPage.reason_against(path)
        ConfigurationError::Problem.new(:error_page, @configuration.origin(:error_page), problem) if problem
      end
    end

    # A server serves without the folder.
    def acme_problems
      problem = Acme::Store.new(@configuration.acme_dir).problem if @configuration.acme.any?
      problem ? [ConfigurationError::Problem.new(:acme_dir, @configuration.origin(:acme_dir), problem)] : []
    end
  end
end
