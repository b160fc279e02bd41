# frozen_string_literal: true

module Fairlead
  # What people and programs watch and steer a running server with: the control server and its commands, the health
  # endpoints, the state file, and the command `fairlead ctl`.
  module Control
    autoload :Server, "fairlead/control/server"
    autoload :Connections, "fairlead/control/connections"
    autoload :Connection, "fairlead/control/connection"
    autoload :CommandThreads, "fairlead/control/command_threads"
    autoload :Request, "fairlead/control/request"
    autoload :Response, "fairlead/control/response"
    autoload :Commands, "fairlead/control/commands"
    autoload :Health, "fairlead/control/health"
    autoload :Token, "fairlead/control/token"
    autoload :Pulse, "fairlead/control/pulse"
    autoload :Peaks, "fairlead/control/peaks"
    autoload :PumaStats, "fairlead/control/puma_stats"
    autoload :AutoUrl, "fairlead/control/auto_url"
    autoload :Sockets, "fairlead/control/sockets"
    autoload :OwnStats, "fairlead/control/own_stats"
    autoload :Report, "fairlead/control/report"
    autoload :StateFile, "fairlead/control/state_file"
    autoload :RestartFile, "fairlead/control/restart_file"
    autoload :Desk, "fairlead/control/desk"
    autoload :Client, "fairlead/control/client"
    autoload :Tool, "fairlead/control/tool"
  end
end
