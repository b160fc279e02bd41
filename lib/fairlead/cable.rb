# frozen_string_literal: true

module Fairlead
  # Action Cable on this server.
  module Cable
    autoload :Socket, "fairlead/cable/socket"
    autoload :Sockets, "fairlead/cable/sockets"
  end
end
