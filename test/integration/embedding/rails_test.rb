# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"
require "support/needed_gems"
require "uri"

# A small Rails application, started with `rails server -u fairlead` and with `fairlead`: with threads, with workers, and
# with a database.
class RailsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::NeededGems

  FILES = {
    "bin/rails" => <<~RUBY,
      APP_PATH = File.expand_path("../config/application", __dir__)
      require_relative "../config/boot"
      require "rails/commands"
    RUBY
    "config/boot.rb" => "require 'logger'\n",
    "config/environment.rb" => "require_relative 'application'\nRails.application.initialize!\n",
    "config/application.rb" => <<~RUBY,
      require "rails"
      require "action_controller/railtie"
      require "active_record/railtie"

      class Shop < Rails::Application
        config.load_defaults 6.1
        config.eager_load = true
        config.hosts.clear
        config.secret_key_base = "0123456789abcdef" * 8
        config.consider_all_requests_local = false
        config.logger = Logger.new(File.expand_path("../log.txt", __dir__))
      end
    RUBY
    "config/database.yml" => "development:\n  adapter: sqlite3\n  database: shop.sqlite3\n  pool: 5\n  timeout: 5000\n",
    "config/routes.rb" => <<~RUBY,
      Rails.application.routes.draw do
        root to: "items#index"
        resources :items, only: %i[index create show]
        get "count", to: "items#count"
        get "live", to: "items#live"
        get "raise", to: "items#fail"
      end
    RUBY
    "app/models/item.rb" => <<~RUBY,
      class Item < ActiveRecord::Base
        connection.create_table(:items, force: true) { |table| table.string :name } unless table_exists?
      end
    RUBY
    "app/controllers/items_controller.rb" => <<~RUBY
      class ItemsController < ActionController::Base
        skip_forgery_protection
        def index = render(plain: Item.order(:id).pluck(:name).join(","))
        def create = redirect_to(item_path(Item.create!(name: params.require(:name))))
        def show = render(json: Item.find(params[:id]))
        def count = render(plain: (session[:count] = session[:count].to_i + 1).to_s)
        def fail = raise("oops")
        def live = self.response_body = Enumerator.new { |pieces| 5.times { |n| pieces << n.to_s } }
      end
    RUBY
  }.freeze

  RACKUP = "require_relative 'config/environment'\nrun Rails.application\n"

  FORM = { "content-type" => "application/x-www-form-urlencoded" }.freeze

  def setup = needs_gems("rails", "sqlite3")

  def test_rails_server_starts_it
    server = Fairlead::Test::LaunchedBy.new("bin/rails", RACKUP, "server", "-u", "fairlead", "-b", "127.0.0.1", "-p", 0, files: FILES)
    own(server).start(seconds: 40)

    assert_rails_works(server)
    assert_equal 0, server.stop(:INT).exitstatus
  end

  # As with Puma: Rails' default in development is localhost, and a configuration file with only a port does not open it to
  # the network.
  def test_in_development_a_port_is_on_this_machine_only
    server = rails_server("port 0")

    assert_equal(%w[localhost], server.addresses.map { |address| loopback?(address) ? "localhost" : address }.uniq)
    assert_includes server.stdout, "development, port on localhost)"
    assert_equal 200, get(server, "/items").status
  end

  def test_a_host_that_somebody_names_counts
    assert_equal(%w[127.0.0.2], rails_server("port 0, '127.0.0.2'").addresses.map { |address| URI(address).host })
    assert_equal(%w[0.0.0.0], rails_server("port 0", "-b", "0.0.0.0", "-p", 0).addresses.map { |address| URI(address).host })
  end

  def test_in_production_a_port_is_on_every_interface
    database = FILES["config/database.yml"].sub("development", "production")
    server = rails_server("port 0", "-e", "production", files: { "config/database.yml" => database })

    refute(server.addresses.any? { |address| loopback?(address) })
    assert_equal 200, get(server, "/items").status
  end

  def test_fairlead_starts_it_with_threads
    server = rails("-t", 5)

    assert_rails_works(server)
    clients = Array.new(10) { connect(server).request("GET", "/items") }
    assert_equal ["blue item"], clients.map { |client| client.answer.body }.uniq
  end

  def test_fairlead_starts_it_with_workers
    reconnect = "before_fork { ActiveRecord::Base.connection_pool.disconnect! }\nbefore_worker_boot { ActiveRecord::Base.establish_connection }"
    server = rails("-w", 2, "-t", 2, files: { "config/fairlead.rb" => reconnect })

    assert_rails_works(server)
    assert_equal 0, server.stop.exitstatus
  end

  private

  def rails(*arguments, files: {})
    server = launch(RACKUP, *arguments, files: FILES.merge(files), &:itself)
    server.start(seconds: 40)
  end

  # Runs `rails server` with that configuration file, without an address.
  def rails_server(configuration, *arguments, files: {})
    files = FILES.merge("config/fairlead.rb" => configuration, **files)
    server = Fairlead::Test::LaunchedBy.new("bin/rails", RACKUP, "server", "-u", "fairlead", *arguments, files: files)
    own(server).start(seconds: 40)
  end

  def loopback?(address) = URI(address).hostname.then { |host| host == "::1" || host.start_with?("127.") }

  def assert_rails_works(server)
    created = ask(server, "POST", "/items", FORM, "name=blue+item")

    assert_equal [302, "http://localhost/items/1"], [created.status, created["location"]]
    assert_equal '{"id":1,"name":"blue item"}', get(server, "/items/1").body
    assert_equal "blue item", get(server).body
    assert_equal "01234", get(server, "/live").body
    assert_equal([404, 404, 500], ["/none", "/items/99", "/raise"].map { |path| get(server, path).status })
    assert_session_counts(server)
  end

  def assert_session_counts(server)
    client = connect(server)
    first = client.get("/count")
    second = client.get("/count", "cookie" => first["set-cookie"][/\A[^;]+/])

    assert_equal %w[1 2], [first.body, second.body]
  end
end
