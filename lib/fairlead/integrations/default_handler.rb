# frozen_string_literal: true

module Fairlead
  module Integrations
    # Which handler Rack takes when nobody names one: Puma if it is there, then this server, then what Rack knows besides. It is
    # put in front of Rack::Handler.default and Rackup::Handler.default.
    module DefaultHandler
      NAME = "RACKUP_HANDLER"

      # What Rack itself asks for before it looks for a server.
      ASKED = %w[RACK_HANDLER PHP_FCGI_CHILDREN REQUEST_METHOD].freeze

      def default
        return get(ENV.fetch(NAME)) if ENV.key?(NAME)
        return super if ASKED.any? { |name| ENV.key?(name) }

        pick(%w[puma fairlead])
      end
    end
  end
end
