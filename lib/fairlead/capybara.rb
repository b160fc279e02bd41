# frozen_string_literal: true

# Runs system tests on Fairlead: `Capybara.server = :fairlead`. Where the bundle has Capybara, it is registered without this
# file; elsewhere require "fairlead/capybara".

require "capybara"
require "fairlead"
require "fairlead/integrations/capybara"
