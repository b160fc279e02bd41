# frozen_string_literal: true

# Runs system tests on Fairlead: `Capybara.server = :fairlead`. If the bundle has Capybara, the server is registered without
# this file; otherwise require "fairlead/capybara".

require "capybara"
require "fairlead"
require "fairlead/integrations/capybara"
