# frozen_string_literal: true

module Fairlead
  # The configuration of a server, from flags, configuration file, environment and defaults (in that order of precedence): one
  # frozen, validated object. A Layer has the options of a single source.
  #
  # An option is read by its name: `configuration.workers`, `configuration.preload?`.
  class Configuration
    autoload :Layer, "fairlead/configuration/layer"
    autoload :EmbeddedLayer, "fairlead/configuration/embedded_layer"
    autoload :Flags, "fairlead/configuration/flags"
    autoload :Addresses, "fairlead/configuration/addresses"
    autoload :Folders, "fairlead/configuration/folders"
    autoload :ConfigFile, "fairlead/configuration/config_file"
    autoload :Accepted, "fairlead/configuration/accepted"
    autoload :AcceptedMethods, "fairlead/configuration/puma_methods"
    autoload :Migration, "fairlead/configuration/migration"
    autoload :TextEdits, "fairlead/configuration/text_edits"
    autoload :PumaMethods, "fairlead/configuration/puma_methods"
    autoload :PumaOptions, "fairlead/configuration/puma_options"
    autoload :Draft, "fairlead/configuration/puma_options"
    autoload :HookList, "fairlead/configuration/hook_list"
    autoload :Script, "fairlead/configuration/script"
    autoload :Environment, "fairlead/configuration/environment"
    autoload :Loader, "fairlead/configuration/loader"
    autoload :Report, "fairlead/configuration/report"
    autoload :Values, "fairlead/configuration/values"

    # A value and its source.
    Setting = Struct.new(:value, :origin)

    # The source of a value that no source has set.
    DEFAULT = "default"

    class << self
      # The configuration of a command line. Raises ConfigurationError with all its problems. +flags+: a Layer. +environment+:
      # the variables. +fallback+: a Layer with values for options that no other source sets. +default_host+: the host for a
      # port without a host in the configuration file; nil means every interface.
      def load(flags, environment: ENV, fallback: Layer.new, default_host: nil)
        Loader.new(flags, environment, fallback, default_host).load
      end

      # The configuration of a program; ignores the file and the environment.
      def from_options(options)
        new([Layer.from(options, origin: "Fairlead::Server")])
      end

      # The configuration of a Fairlead::Server. Options of the command have no meaning there.
      def embedded(options)
        new([EmbeddedLayer.from(options, origin: "Fairlead::Server")], embedded: true)
      end

      # True if Ruby threads may change their native thread (the M:N scheduler of Ruby 3.3 and newer is switched on).
      def mn_scheduler?(description = RUBY_DESCRIPTION) = description.include?("+MN")
    end

    # The Hooks of the configuration file, and warnings about settings that have no effect.
    attr_reader :hooks, :warnings

    # The host for a port without a host in the configuration file; nil if it was not needed.
    attr_reader :default_host

    # The application that the configuration file contains, or nil.
    attr_reader :app

    # Settings for plugins in the configuration file, beyond the options: name => value.
    attr_reader :plugin_settings

    # +layers+: the sources; the first one wins. +embedded+: true for a Fairlead::Server.
    def initialize(layers, hooks: Hooks.new, default_host: nil, app: nil, plugin_settings: {}, embedded: false)
      @hooks = hooks.freeze
      @app = app
      @embedded = embedded
      @plugin_settings = plugin_settings.dup.freeze
      @default_host = default_host
      @values = Values.new(layers.reverse.reduce({}) { |settings, layer| settings.merge(layer.settings) })
      problems = layers.flat_map(&:problems) + @values.problems + contradictions + mn_scheduler_problems
      problems += Redirection.problems(self) if redirect_stdout || redirect_stderr
      raise ConfigurationError, problems if problems.any?

      @warnings = (layers.flat_map(&:warnings) + options_without_effect + ineffective_without_tls + ineffective_without_workers +
                   beyond_open_files).freeze
      freeze
    end

    def [](name) = @values[name]

    # The source of the option's value: a flag, a line of a file, a variable, or "default".
    def origin(name) = @values.origin(name)

    # True if a source has set the option.
    def given?(name) = origin(name) != DEFAULT

    Options.settings.each do |option|
      define_method(option.boolean? ? :"#{option.name}?" : option.name) { self[option.name] }
    end

    # True if there are workers and a supervisor.
    def supervised? = workers.positive?

    def development? = environment == "development"

    # True if the server surely runs for development. A program with a server inside may be in production without any setting.
    def at_development? = development? && (!@embedded || given?(:environment))

    # The destination of the access log: a path, "-" for standard output, or nil.
    def access_log_path
      access_log || ("-" if log_requests? && !quiet?)
    end

    # The options of the engine: name => value.
    def engine_settings
      Options.settings.select(&:engine?).to_h { |option| [option.name, option.type.to_engine(self[option.name])] }
    end

    private

    # Problems between options.
    def contradictions = thread_problems + acme_problems

    def thread_problems
      return [] unless min_threads > max_threads

      origin = [origin(:min_threads), origin(:max_threads)].find { |name| name != DEFAULT }
      [problem(:min_threads, origin, "is #{min_threads}, more than max_threads (#{max_threads})")]
    end

    # Two certificates of one name would be in the same file.
    def acme_problems
      return [problem(:acme_dir, nil, "#{StateFolder::HOMELESS}; set acme_dir, HOME or STATE_DIRECTORY")] if acme.any? && acme_dir.nil?

      names = acme.group_by { |order| [order.directory, order.name] }.select { |_, orders| orders.size > 1 }.keys
      names.map { |_, name| problem(:acme, origin(:acme), "#{name} begins two certificates; name its hosts together, or another host first") }
    end

    # The engine keeps the state of a Ruby thread by native thread.
    def mn_scheduler_problems
      return [] unless self.class.mn_scheduler?

      [problem(nil, "RUBY_MN_THREADS", "not supported, because each Ruby thread must keep its native thread; unset it")]
    end

    def problem(option, origin, message)
      ConfigurationError::Problem.new(option, origin, message)
    end

    def options_without_effect
      idle = Options.settings.select { |option| option.needs && given?(option.name) && [nil, false, []].include?(self[option.needs]) }
      idle.map { |option| problem(option.name, origin(option.name), "has no effect without #{option.needs}").to_s }
    end

    def ineffective_without_tls
      return [] if bind.any? { |address| address.start_with?("ssl://") }

      names = %i[certificate acme].reject { |name| self[name].empty? }
      names.map { |name| problem(name, origin(name), "nothing uses it, because no address of bind begins with ssl://").to_s }
    end

    def ineffective_without_workers
      return [] if supervised?

      idle = silence_fork_callback_warning? ? [] : hooks.names & Hooks::WITH_WORKERS
      idle = idle.map { |name| "#{name} never runs, because there are no workers" }
      idle << "#{origin(:preload)}: preload has no effect without workers" if preload? && given?(:preload)
      idle
    end

    # A server inside another program does not raise the limit.
    def beyond_open_files
      return [] if max_connections.zero?

      limit = @embedded ? Process.getrlimit(:NOFILE).first : Process.getrlimit(:NOFILE).last
      most = Native.connections_within(limit, max_connections)
      return [] if max_connections <= most

      [problem(:max_connections, origin(:max_connections), "a process can have only #{most}, because its limit of open files " \
                                                           "(ulimit -Hn) is #{limit}").to_s]
    end
  end
end
