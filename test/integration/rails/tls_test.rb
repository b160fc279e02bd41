# frozen_string_literal: true

require "test_helper"
require "json"
require "support/certificates"
require "support/rails_servers"
require "support/web_socket"

# The generated application on an `ssl://` address, with Rails' own settings for TLS: the env of a request, the redirect of
# requests without TLS, cookies, and Action Cable.
class RailsTlsTest < Minitest::Test
  include Fairlead::Test::RailsServers
  include Fairlead::Test::Secured
  include Fairlead::Test::WebSockets

  ENVIRONMENT = "config/environments/development.rb"
  SETTINGS = <<~RUBY
    Rails.application.configure do
      config.force_ssl = true
      config.action_cable.allowed_request_origins = ["https://shop.test"]
    end
  RUBY
  ROUTE = 'Rails.application.routes.append { get "secured", to: "secured#show" }'
  CONTROLLER = <<~RUBY
    class SecuredController < ApplicationController
      def show
        cookies[:seen] = "yes"
        session[:seen] = "yes"
        render json: { ssl: request.ssl?, ip: request.remote_ip, url: request.url, redirect: url_for(action: :show) }
      end
    end
  RUBY

  CABLE = { path: "/cable", protocols: %w[actioncable-v1-json] }.freeze

  def test_it_knows_that_requests_have_come_with_tls
    server = shop_with_tls
    answer = secured(server).get("/secured", "host" => "localhost:#{tls_port(server)}")

    url = "https://localhost:#{tls_port(server)}/secured"
    assert_equal({ "ssl" => true, "ip" => "127.0.0.1", "url" => url, "redirect" => url }, JSON.parse(answer.body))
    assert_match(/\Amax-age=\d+/, answer["strict-transport-security"])
    cookies = answer.all("set-cookie").to_h { |cookie| [cookie[/\A\w+/], cookie] }
    assert_equal %w[_shop_session seen], cookies.keys.sort
    cookies.each_value { |cookie| assert_match(/; *secure(;|\z)/i, cookie) }
  end

  def test_without_tls_it_sends_clients_there
    server = shop_with_tls
    answer = get(server, "/secured")

    assert_equal [301, "https://localhost/secured"], [answer.status, answer["location"]]
  end

  def test_action_cable_speaks_over_tls_with_those_of_the_same_origin
    server = shop_with_tls
    ["https://shop.test", "https://localhost:#{tls_port(server)}"].each { |origin| assert_joins(cable(server, origin)) }
    ["http://shop.test", "http://localhost:#{tls_port(server)}"].each do |origin|
      assert_equal 404, assert_raises(Fairlead::Test::WebSocket::Refused) { cable(server, origin) }.status
    end
  end

  private

  # Without TLS at its first address, with TLS at its second one.
  def shop_with_tls
    environment = Fairlead::Test::RailsApplication.files.fetch(ENVIRONMENT)
    files = { ENVIRONMENT => "#{environment}\n#{SETTINGS}", "config/initializers/tls.rb" => ROUTE,
              "app/controllers/secured_controller.rb" => CONTROLLER, **certificate_files }
    fairlead("-b", ssl_address, files: files)
  end

  def tls_port(server) = server.ports.last

  def secured(server) = adopt(relayed_tls_socket(tls_port(server)))

  def cable(server, origin)
    headers = { "host" => "localhost:#{tls_port(server)}", "origin" => origin }
    adopt_web_socket(Fairlead::Test::WebSocket.over(relayed_tls_socket(tls_port(server)), CABLE[:path], headers: headers,
                                                                                                       protocols: CABLE[:protocols]))
  end

  # Subscribes after the welcome: Rails' own sockets lose commands that come before they are open.
  def assert_joins(client)
    assert_equal "welcome", JSON.parse(client.receive.last)["type"]
    client.send_text(JSON.generate(command: "subscribe", identifier: JSON.generate(channel: "RoomChannel")))
    heard = []
    heard << JSON.parse(client.receive.last)["type"] until heard.include?("confirm_subscription")
  end
end
