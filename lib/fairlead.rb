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

  # For programs that carry a server inside themselves, and for rackup and Rails.
  autoload :Server, "fairlead/server"
  autoload :Handler, "fairlead/handler"

  # What `fairlead` on the command line is made of.
  autoload :CLI, "fairlead/cli"
  autoload :Options, "fairlead/options"
  autoload :Configuration, "fairlead/configuration"
  autoload :Hooks, "fairlead/hooks"
  autoload :EventLog, "fairlead/event_log"
  autoload :Launcher, "fairlead/launcher"
  autoload :Service, "fairlead/service"
  autoload :Single, "fairlead/single"
  autoload :Supervisor, "fairlead/supervisor"
  autoload :Worker, "fairlead/worker"
  autoload :Signals, "fairlead/signals"
  autoload :PidFile, "fairlead/pid_file"

  # Sockets, the application, and the native engine that joins them.
  autoload :Binding, "fairlead/binding"
  autoload :Listener, "fairlead/listener"
  autoload :Listeners, "fairlead/listeners"
  autoload :RackApp, "fairlead/rack_app"
  autoload :AppError, "fairlead/app_error"
  autoload :AccessLog, "fairlead/access_log"
  autoload :Engine, "fairlead/engine"
  autoload :Native, "fairlead/native"
  autoload :Stats, "fairlead/stats"

  # Figures of the server in this process and of its siblings, as a Hash; see Stats.to_h.
  def self.stats = Stats.to_h
end
