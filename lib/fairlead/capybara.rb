# frozen_string_literal: true

require "capybara"
require "fairlead"

# Runs system tests on Fairlead: `require "fairlead/capybara"` and `Capybara.server = :fairlead`. Capybara calls the block
# on a thread of its own. The options are those that Puma takes, such as { Silent: true }.
Capybara.register_server(:fairlead) do |app, port, host, **options|
  Object.new.extend(Fairlead::Handler).run(app, Host: host, Port: port, Threads: "0:4", **options)
end
