# frozen_string_literal: true

require_relative "default_handler"

# Is loaded with Rack::Handler, before or after the rest of it.
module Rack
  # See Fairlead::Integrations.
  module Handler
    singleton_class.prepend(::Fairlead::Integrations::DefaultHandler)
  end
end

Fairlead::Integrations.complete("rack/handler")
