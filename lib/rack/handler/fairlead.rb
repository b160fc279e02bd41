# frozen_string_literal: true

require "rack/handler"
require "fairlead"
require "fairlead/integrations/rack_server"

module Rack
  module Handler # :nodoc:
    # Found here by rackup of Rack 2; see Fairlead::Handler.
    module Fairlead
      extend ::Fairlead::Handler
    end

    register :fairlead, Fairlead
    ::Fairlead::Integrations::RackServer.install(::Rack)
  end
end
