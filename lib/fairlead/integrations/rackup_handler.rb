# frozen_string_literal: true

require "fairlead/integrations/default_handler"

Rackup::Handler.singleton_class.prepend(Fairlead::Integrations::DefaultHandler)
