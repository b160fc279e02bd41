# frozen_string_literal: true

if RUBY_ENGINE != "ruby" || RUBY_PLATFORM.match?(/mswin|mingw|cygwin/)
  require "fairlead/unsupported"
  raise LoadError, Fairlead::Unsupported.problem
end

require_relative "fairlead/clock"

# Fairlead, an application server for Rack with a native core. This file is the public interface. Each part is loaded when it
# is first used, so requiring this file loads neither Rack nor sockets nor the native extension.
module Fairlead
  autoload :VERSION, "fairlead/version"

  autoload :Error, "fairlead/error"
  autoload :ConfigurationError, "fairlead/error"
  autoload :BindError, "fairlead/error"
  autoload :PidFileError, "fairlead/error"
  autoload :StateFileError, "fairlead/error"
  autoload :PluginError, "fairlead/error"
  autoload :AppLoadError, "fairlead/error"
  autoload :DescriptorError, "fairlead/error"
  autoload :ThreadLimitError, "fairlead/error"
  autoload :ExtensionError, "fairlead/error"
  autoload :ClosedError, "fairlead/error"
  autoload :FinishedError, "fairlead/error"
  autoload :ForcedShutdown, "fairlead/error"

  # For programs with a server inside, for rackup and for Rails.
  autoload :Server, "fairlead/server"
  autoload :Group, "fairlead/group"
  autoload :Handler, "fairlead/rack/handler"
  autoload :Integrations, "fairlead/integrations"
  autoload :Tracing, "fairlead/tracing"

  # Real time, and other work of an application besides serving requests.
  autoload :Client, "fairlead/native"
  autoload :PubSub, "fairlead/realtime/pub_sub"
  autoload :Schedule, "fairlead/realtime/schedule"
  autoload :Timer, "fairlead/realtime/timer"
  autoload :Timers, "fairlead/realtime/timers"
  autoload :Background, "fairlead/realtime/background"
  autoload :Cable, "fairlead/cable"
  autoload :Handover, "fairlead/realtime/handover"
  autoload :KeptStreams, "fairlead/realtime/kept_streams"
  autoload :PublishSocket, "fairlead/realtime/publish_socket"
  autoload :Cable, "fairlead/cable"

  # The command `fairlead`.
  autoload :CLI, "fairlead/cli"
  autoload :Options, "fairlead/options"
  autoload :Configuration, "fairlead/configuration"
  autoload :Hooks, "fairlead/process/hooks"
  autoload :EventLog, "fairlead/observe/event_log"
  autoload :LoadTool, "fairlead/load_tool"
  autoload :NativeProgram, "fairlead/native_program"
  autoload :Unsupported, "fairlead/unsupported"
  autoload :Migrate, "fairlead/migrate"
  autoload :Launcher, "fairlead/process/launcher"
  autoload :Service, "fairlead/service"
  autoload :FirstStart, "fairlead/process/first_start"
  autoload :EmbeddedSupervisor, "fairlead/process/embedded_supervisor"
  autoload :SupervisorSettings, "fairlead/process/supervisor_settings"
  autoload :ForkSafety, "fairlead/process/fork_safety"
  autoload :EagerLoad, "fairlead/eager_load"
  autoload :Joining, "fairlead/process/joining"
  autoload :OtherSupervisor, "fairlead/process/other_supervisor"
  autoload :Collections, "fairlead/process/collections"
  autoload :SharedHeap, "fairlead/process/shared_heap"
  autoload :Role, "fairlead/process/role" # before the classes that include it: EagerLoad finds a file faster than RubyGems does
  autoload :Link, "fairlead/process/link"
  autoload :Spawner, "fairlead/process/spawner"
  autoload :Sole, "fairlead/process/sole"
  autoload :Resident, "fairlead/process/resident"
  autoload :Steward, "fairlead/process/steward"
  autoload :Worker, "fairlead/process/worker"
  autoload :WarmUp, "fairlead/process/warm_up"
  autoload :BundleExec, "fairlead/process/bundle_exec"
  autoload :RestartCommand, "fairlead/process/restart_command"
  autoload :Backtraces, "fairlead/process/backtraces"
  autoload :Signals, "fairlead/process/signals"
  autoload :EarlySignals, "fairlead/process/early_signals"
  autoload :RunningTime, "fairlead/process/running_time"
  autoload :ProcessEnd, "fairlead/process/process_end"
  autoload :ProgramGroup, "fairlead/process/program_group"
  autoload :Preflight, "fairlead/process/preflight"
  autoload :PidFile, "fairlead/process/pid_file"
  autoload :SystemText, "fairlead/system_text"
  autoload :Acme, "fairlead/acme"
  autoload :StateFolder, "fairlead/state_folder"
  autoload :WholeFile, "fairlead/whole_file"
  autoload :Control, "fairlead/control"
  autoload :Plugins, "fairlead/plugins"

  # Sockets, the application and the native engine.
  autoload :Backlog, "fairlead/listening/backlog"
  autoload :Binding, "fairlead/listening/binding"
  autoload :Listener, "fairlead/listening/listener"
  autoload :Inherited, "fairlead/listening/inherited"
  autoload :Listeners, "fairlead/listening/listeners"
  autoload :Tls, "fairlead/tls"
  autoload :AppLoader, "fairlead/rack/app_loader"
  autoload :ErrorReporter, "fairlead/observe/error_reporter"
  autoload :AccessLog, "fairlead/observe/access_log"
  autoload :EngineLines, "fairlead/observe/engine_lines"
  autoload :LogFile, "fairlead/observe/log_file"
  autoload :Redirection, "fairlead/observe/redirection"
  autoload :ServerField, "fairlead/rack/server_field"
  autoload :PumaEnv, "fairlead/rack/puma_env"
  autoload :Engine, "fairlead/engine"
  autoload :Native, "fairlead/native"
  autoload :Stats, "fairlead/observe/stats"

  class << self
    # The statistics of the server in this process and of its siblings. `:engines` has an entry for each engine of this process.
    # With workers, `:room` has the statistics of the waiting room, and `:workers` an entry for each worker. docs/guides/deployment.md
    # lists them.
    #
    # @return [Hash{Symbol => Array<Hash{Symbol => Integer}>, Hash{Symbol => Integer}}]
    def stats = Stats.to_h

    # Calls the block (or `handler:`) with each message that is published to a channel. It takes the arguments of
    # {Client#subscribe}. The subscription belongs to the process. If it is made before the workers are forked, each worker has
    # it.
    #
    # @param name [String, Symbol] the channel or pattern; also as `to:` or `channel:`
    # @param options [Hash, true, nil] the keywords as a Hash; true means `match: :redis`
    # @option keywords [:redis, :glob, :subject] :match the name is a pattern
    # @option keywords [#call] :handler takes the place of the block
    # @yieldparam channel [String] UTF-8, or binary if it is not valid UTF-8
    # @yieldparam message [String] UTF-8, or binary if it is not valid UTF-8
    # @return [String, Symbol] the name as given
    # @raise [ArgumentError] if there is no name or no block, or +match+ or +handler+ is none of these
    # @raise [TypeError] if the name is neither String nor Symbol
    def subscribe(name = nil, options = nil, **keywords, &block)
      PubSub.registry.subscribe(PubSub::Subscription.parse(name, options, keywords, block))
    end

    # Ends a subscription of the process.
    #
    # @param name [String, Symbol] also as `to:` or `channel:`
    # @param _options [Object] ignored, so that it can be called with the arguments of {subscribe}
    # @return [Boolean] false if there was none
    def unsubscribe(name = nil, _options = nil, **keywords)
      PubSub.registry.unsubscribe(PubSub::Subscription.parse(name, nil, keywords).channel)
    end

    # Publishes a message from anywhere: requests, threads, timers, the spawner. Also `publish(to:, message:, engine:)`.
    #
    # @param to [String, Symbol] the channel
    # @param message [String]
    # @param engine [PubSub::Engine, false, nil] carries the message: nil for {PubSub.default}, false for this process alone
    # @return [Boolean] false if this is known to fail
    # @raise [ArgumentError] if there is no channel or no message, or the channel begins with `fairlead/`
    # @raise [TypeError] if the message is not a String, or the engine not a PubSub::Engine
    def publish(to = nil, message = nil, engine = nil, **keywords)
      return publish(**to) if to.is_a?(Hash)

      to = keywords.fetch(:to) { keywords[:channel] } if to.nil?
      message = keywords[:message] if message.nil?
      engine = keywords[:engine] if engine.nil?
      PubSub.registry.publish_of_app(to, message, engine)
    end

    # Runs the block once, after a time. The time begins now, or when the server begins to serve.
    #
    # @param seconds [Numeric]
    # @return [Timer]
    # @raise [ArgumentError] if there is no block, or the time is negative or infinite
    def run_after(seconds, &block) = Background.current.timers.after(seconds, block)

    # Runs the block at an interval. A run is skipped if the last one has not ended.
    #
    # @param seconds [Numeric] the interval
    # @param repetitions [Integer, nil] the number of runs; nil or 0 for no end
    # @return [Timer]
    # @raise [ArgumentError] if there is no block, the interval is below 0.001 s, or +repetitions+ is negative
    def run_every(seconds, repetitions = nil, &block) = Background.current.timers.every(seconds, repetitions, block)

    # Runs the block soon, on a thread of the server, in turn with the requests.
    #
    # @return [void]
    # @raise [ArgumentError] if there is no block
    def defer(&block)
      raise ArgumentError, "there is no block to defer" unless block

      Background.current.defer(block)
    end

    # Runs the block at a point in the life of the processes.
    #
    # @param event [Symbol] one of Hooks::EVENTS or Hooks::NAMES
    # @yieldparam index [Integer] the number of the worker, for events that have one
    # @return [Proc] the block
    # @raise [ArgumentError] if the event is unknown or there is no block
    def on(event, &block) = Hooks.on(event, block)
  end
end

# Loads the parts when the current folder may have changed.
relative = $LOAD_PATH.index { |path| !path.to_s.start_with?("/") && File.identical?(path, __dir__) }
$LOAD_PATH[relative] = File.expand_path($LOAD_PATH[relative]) if relative

# For libraries that choose a server by its name.
if defined?(Rack) || defined?(Rackup) || defined?(Capybara) || defined?(ActiveSupport) || (defined?(Gem) && Gem.loaded_specs.key?("capybara"))
  Fairlead::Integrations.install
end
