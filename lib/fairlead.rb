# frozen_string_literal: true

# Fairlead, an application server for Rack with a native core. This file is the public surface; every part is loaded
# when it is first named, so requiring it costs next to nothing: no Rack, no sockets, no native extension.
module Fairlead
  autoload :VERSION, "fairlead/version"

  autoload :Error, "fairlead/error"
  autoload :ConfigurationError, "fairlead/error"
  autoload :BindError, "fairlead/error"
  autoload :PidFileError, "fairlead/error"
  autoload :AppLoadError, "fairlead/error"
  autoload :ExtensionError, "fairlead/error"
  autoload :ClosedError, "fairlead/error"
  autoload :FinishedError, "fairlead/error"

  # For programs that carry a server inside themselves, and for rackup and Rails.
  autoload :Server, "fairlead/server"
  autoload :Handler, "fairlead/rack/handler"

  # Real time, and what else an application does beside answering requests.
  autoload :Client, "fairlead/native"
  autoload :PubSub, "fairlead/realtime/pub_sub"
  autoload :Timer, "fairlead/realtime/timer"
  autoload :Timers, "fairlead/realtime/timers"
  autoload :Background, "fairlead/realtime/background"

  # What `fairlead` on the command line is made of.
  autoload :CLI, "fairlead/cli"
  autoload :Options, "fairlead/options"
  autoload :Configuration, "fairlead/configuration"
  autoload :Hooks, "fairlead/process/hooks"
  autoload :EventLog, "fairlead/observe/event_log"
  autoload :LoadTool, "fairlead/load_tool"
  autoload :Launcher, "fairlead/process/launcher"
  autoload :Service, "fairlead/service"
  autoload :Single, "fairlead/process/single"
  autoload :Supervisor, "fairlead/process/supervisor"
  autoload :Worker, "fairlead/process/worker"
  autoload :Signals, "fairlead/process/signals"
  autoload :PidFile, "fairlead/process/pid_file"

  # Sockets, the application, and the native engine that joins them.
  autoload :Binding, "fairlead/listening/binding"
  autoload :Listener, "fairlead/listening/listener"
  autoload :Listeners, "fairlead/listening/listeners"
  autoload :AppLoader, "fairlead/rack/app_loader"
  autoload :ErrorReporter, "fairlead/observe/error_reporter"
  autoload :AccessLog, "fairlead/observe/access_log"
  autoload :Engine, "fairlead/engine"
  autoload :Native, "fairlead/native"
  autoload :Stats, "fairlead/observe/stats"

  class << self
    # Figures of the server in this process and of its siblings, as a Hash; see Stats.to_h.
    def stats = Stats.to_h

    # Has the block (or `handler:`) called with the channel and the message of each message that is published to that
    # channel, as UTF-8 or, what is not valid UTF-8, as binary. Forms and options are those of Client#subscribe. It belongs
    # to the process: what is subscribed before the workers are forked is subscribed in each of them. Returns the name as
    # given.
    def subscribe(name = nil, options = nil, **keywords, &block)
      PubSub.registry.subscribe(PubSub::Subscription.parse(name, options, keywords, block))
    end

    # Ends that; false when there was nothing to end.
    def unsubscribe(name = nil, _options = nil, **keywords)
      PubSub.registry.unsubscribe(PubSub::Subscription.parse(name, nil, keywords).channel)
    end

    # Publishes a String from anywhere: requests, threads, timers, the supervisor. +engine+: who carries it, nil for
    # PubSub.default and false for this process alone. Also `publish(to:, message:, engine:)`. True when it is on its way,
    # false when that is known to fail.
    def publish(to = nil, message = nil, engine = nil, **keywords)
      return publish(**to) if to.is_a?(Hash)

      to = keywords.fetch(:to) { keywords[:channel] } if to.nil?
      message = keywords[:message] if message.nil?
      engine = keywords[:engine] if engine.nil?
      PubSub.registry.publish(to, message, engine)
    end

    # Runs the block once, that many seconds from now, or from when the server begins to serve. Returns a Timer.
    def run_after(seconds, &block) = Background.current.timers.after(seconds, block)

    # Runs the block every so many seconds; +repetitions+ times, or without an end. A run that would begin while the last one
    # has not ended is left out. Returns a Timer.
    def run_every(seconds, repetitions = nil, &block) = Background.current.timers.every(seconds, repetitions, block)

    # Runs the block soon, on a thread of the server, in turn with the requests.
    def defer(&block)
      raise ArgumentError, "there is no block to defer" unless block

      Background.current.defer(block)
    end

    # Runs the block at a point in the life of the processes; Hooks::EVENTS and Hooks::NAMES say which there are. Returns it.
    def on(event, &block) = Hooks.on(event, block)
  end
end
