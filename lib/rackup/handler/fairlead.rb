# frozen_string_literal: true

require "rackup/handler"
require "fairlead"

module Rackup
  module Handler # :nodoc:
    # Found here by rackup (Rack 3); see Fairlead::Handler.
    module Fairlead
      extend ::Fairlead::Handler
    end

    register :fairlead, Fairlead
  end
end
