# frozen_string_literal: true

module Fairlead
  module Integrations
    # Rack's choice of a handler if none is named: Puma if it is there, then this server, then the other handlers of Rack. This
    # module is prepended to Rack::Handler.default and Rackup::Handler.default.
    module DefaultHandler
      NAME = "RACKUP_HANDLER"

      # Variables that Rack itself checks before it looks for a server.
      ASKED = %w[RACK_HANDLER PHP_FCGI_CHILDREN REQUEST_METHOD].freeze

      def default
        return get(ENV.fetch(NAME)) if ENV.key?(NAME)
        return super if ASKED.any? { |name| ENV.key?(name) }

        pick(%w[puma fairlead])
      end
    end
  end
end
