# frozen_string_literal: true

# A Rails application in one file: one page, no database, production.
require "logger"
require "rails"
require "action_controller/railtie"
require "action_view/railtie"

# The application.
class Shop < Rails::Application
  config.root = __dir__
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = true
  config.hosts.clear
  config.secret_key_base = "0123456789abcdef" * 8
  config.logger = Logger.new(nil)
  routes.append { root to: "pages#index" }
end

# Its page.
class PagesController < ActionController::Base
  def index
    render plain: "hello\n"
  end
end

Shop.initialize!
run Shop
