# frozen_string_literal: true

module Fairlead
  module Integrations
    # Put in front of the methods of Capybara, whose table of servers may not exist yet.
    module CapybaraServers
      # Capybara calls it on a thread of its own. The options are those that Puma takes, such as { Silent: true }.
      RUN = lambda do |app, port, host, **options|
        Object.new.extend(Handler).run(app, Host: host, Port: port, Threads: "0:4", **options)
      end

      def servers
        super.tap { |known| known.send(:register, :fairlead, RUN) unless known[:fairlead] }
      end

      # What runs where `Capybara.server` was never set. Capybara itself knows only Puma here.
      def run_default_server(app, port)
        Integrations.puma? ? super : servers[:fairlead].call(app, port, server_host)
      end
    end
  end
end

# Comes with Capybara, before or after the rest of it.
module Capybara
  singleton_class.prepend(Fairlead::Integrations::CapybaraServers)
end

Fairlead::Integrations.complete("capybara")
