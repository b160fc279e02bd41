# frozen_string_literal: true

module Fairlead
  # Finds out what would keep a server from starting, as far as that is known without listening, loading the application or changing
  # anything. `--check` and each start run it, so that both refuse the same. What may have changed by the start is left to it: an
  # address that another process has, a pid file of a server that runs.
  class Preflight
    # The one of `--check`.
    def self.of_check(configuration) = new(configuration, app: configuration.app, by_hand: true)

    # +app+: an application that takes the place of that of the rackup file. +by_hand+: whether somebody only wants to know, so that what
    # a server could do without is refused, too. +activated+: whether systemd has passed sockets, which may take the place of all
    # addresses. The block says of a Binding whether it is open. The current folder is that of the
    # configuration.
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
      problems += acme_problems if @by_hand
      raise ConfigurationError, problems if problems.any?

      PidFile.check(@configuration.pid_file) if @configuration.pid_file
      @configuration.plugin.uniq.each { |name| load_plugin(name) }
    end

    private

    # A configuration file has loaded those that it names. Only that finds a plugin which a gem contains.
    def load_plugin(name)
      Plugins.load(name)
    rescue Error
      raise
    rescue StandardError, ScriptError => e
      raise PluginError.new(name, Error.sum_up(e))
    end

    # A server serves without the folder.
    def acme_problems
      problem = Acme::Store.new(@configuration.acme_dir).problem if @configuration.acme.any?
      problem ? [ConfigurationError::Problem.new(:acme_dir, @configuration.origin(:acme_dir), problem)] : []
    end
  end
end
