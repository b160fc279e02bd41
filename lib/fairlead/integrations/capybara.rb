# frozen_string_literal: true

module Fairlead
  module Integrations
    # Prepended to Capybara's singleton class; its table of servers may not exist yet.
    module CapybaraServers
      # Capybara calls it on a separate thread. It takes Puma's options, such as { Silent: true }.
      RUN = lambda do |app, port, host, **options|
        Object.new.extend(Handler).run(app, Host: host, Port: port, Threads: "0:4", **options)
      end

      def servers
        super.tap { |known| known.send(:register, :fairlead, RUN) unless known[:fairlead] }
      end

      # Runs if `Capybara.server` was never set. Capybara itself knows only Puma here.
      def run_default_server(app, port)
        Integrations.puma? ? super : servers[:fairlead].call(app, port, server_host)
      end
    end
  end
end

# Is loaded with Capybara, before or after the rest of it.
module Capybara
  singleton_class.prepend(Fairlead::Integrations::CapybaraServers)
end

Fairlead::Integrations.complete("capybara")
