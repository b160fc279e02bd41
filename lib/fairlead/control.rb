# frozen_string_literal: true

module Fairlead
  # Tools for people and programs to watch and steer a running server: the control server and its commands, the health
  # endpoints, the state file, and the command `fairlead ctl`.
  module Control
    autoload :Token, "fairlead/control/token"
    autoload :PumaStats, "fairlead/control/puma_stats"
    autoload :AutoUrl, "fairlead/control/auto_url"
    autoload :Sockets, "fairlead/control/sockets"
    autoload :OwnStats, "fairlead/control/own_stats"
    autoload :StateFile, "fairlead/control/state_file"
    autoload :Client, "fairlead/control/client"
    autoload :Tool, "fairlead/control/tool"
  end
end
