# frozen_string_literal: true

require "rackup/handler"
require "fairlead"
require "fairlead/integrations/rack_server"

module Rackup
  module Handler # :nodoc:
    # Found here by rackup (Rack 3); see Fairlead::Handler.
    module Fairlead
      extend ::Fairlead::Handler
    end

    register :fairlead, Fairlead
    ::Fairlead::Integrations::RackServer.install(::Rackup)
  end
end
