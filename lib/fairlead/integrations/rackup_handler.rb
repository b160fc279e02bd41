# frozen_string_literal: true

require_relative "default_handler"

Rackup::Handler.singleton_class.prepend(Fairlead::Integrations::DefaultHandler)
