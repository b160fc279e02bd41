# frozen_string_literal: true

module Fairlead
  # Makes the server known to libraries that choose a server by name: Rack's handlers, Capybara and the system tests of Rails.
  # Libraries that are loaded already are told at once. For others there is an autoload: the code that opens or names their
  # module first loads our file beside it. So waiting costs nothing, and +require+ stays as it is.
  module Integrations
    class << self
      def install
        rack
        rackup
        capybara
        system_tests
      end

      # True if Puma can be loaded. Then Puma stays the default of an application that names no server.
      def puma?
        require "rack/handler/puma"
        true
      rescue LoadError
        false
      end

      # Requires +feature+, unless that file has just led here.
      def complete(feature)
        path = $LOAD_PATH.resolve_feature_path(feature)&.last
        require feature unless caller_locations.any? { |frame| frame.absolute_path == path }
      end

      private

      # The handlers of Rack 2, which Rack itself loads late.
      def rack
        return unless defined?(::Rack::Handler)

        if ::Rack.autoload?(:Handler)
          ::Rack.autoload(:Handler, "fairlead/integrations/rack_handler")
        else
          require "fairlead/integrations/rack_handler"
        end
      end

      # The handlers of Rack 3. A program that starts an application with Rackup has loaded them before the application.
      def rackup
        require_relative "integrations/rackup_handler" if defined?(::Rackup::Handler)
      end

      # The autoload is for bundles with Capybara only: for others, `defined?(Capybara)` must stay false.
      def capybara
        if Object.const_defined?(:Capybara) && !Object.autoload?(:Capybara)
          require "fairlead/integrations/capybara"
        elsif defined?(Gem) && Gem.loaded_specs.key?("capybara")
          Object.autoload(:Capybara, "fairlead/integrations/capybara")
        end
      end

      # There, Rails asks for Puma if no server has been chosen yet.
      def system_tests
        return unless defined?(::ActiveSupport) && ::ActiveSupport.respond_to?(:on_load)

        ::ActiveSupport.on_load(:action_dispatch_system_test_case) do
          ::Capybara.server = :fairlead if ::Capybara.server == ::Capybara.servers[:default] && !Integrations.puma?
        end
      end
    end
  end
end
