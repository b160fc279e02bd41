# frozen_string_literal: true

require "test_helper"
require "json"
require "support/rails_servers"
require "support/web_socket"

# Native sockets of Action Cable in an application from `rails new`, changed in config/cable.yml alone: Active Record, the
# executor, reloading of code, and Rails' own log.
class CableInRailsTest < Minitest::Test
  include Fairlead::Test::RailsServers
  include Fairlead::Test::WebSockets

  CABLE = "development:\n  adapter: fairlead\n"

  NOTES = <<~'RUBY'
    class NotesChannel < ApplicationCable::Channel
      def subscribed = stream_for(Note)

      def create(data)
        note = Note.create!(title: data["title"])
        NotesChannel.broadcast_to(Note, { id: note.id, title: note.title, version: 1 })
      end

      def connections = Note.count.then { transmit({ busy: ActiveRecord::Base.connection_pool.stat.fetch(:busy) }) }
      def fail = Note.find(0)
    end
  RUBY

  IDENTIFIER = JSON.generate(channel: "NotesChannel")

  def test_a_channel_with_records_over_several_workers
    server = start("-w", 2, "--preload")
    clients = Array.new(4) { joined(server) }
    act(clients.first, "create", title: "<b>grün</b>")
    heard = clients.map { |client| told(client) }

    assert_equal [heard.first] * 4, heard
    assert_equal ["<b>grün</b>", 1], heard.first.values_at("title", "version")
    # Each returns its database connection. Since Rails 7.2, each query does.
    5.times { act(clients.first, "fail") }
    act(clients.first, "connections")
    assert_includes 0..1, told(clients.first)["busy"]
    wait_for_log(server, /ActiveRecord::RecordNotFound/)
    wait_for_log(server, %r{Started GET "/cable/?" \[WebSocket\] for 127\.0\.0\.1})
    wait_for_log(server, /Successfully upgraded to WebSocket/)
  end

  def test_new_code_of_a_channel_is_loaded
    server = start
    client = joined(server)
    server.write("app/channels/notes_channel.rb", NOTES.sub("version: 1", "version: 2"))
    get(server, "/notes")

    assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, heard(client))
    assert_equal 1000, client.receive_close.first
    client = joined(server)
    act(client, "create", title: "x")
    assert_equal 2, told(client)["version"]
  end

  def test_rails_server_too
    server = rails_server(files: files)
    client = joined(server)
    act(client, "create", title: "x")

    assert_equal "x", told(client)["title"]
  end

  private

  def files = { "config/cable.yml" => CABLE, "app/channels/notes_channel.rb" => NOTES }

  def start(*arguments) = fairlead(*arguments, files: files)

  def joined(server)
    client = web_socket(server, "/cable", headers: { "origin" => "http://localhost:3000" }, protocols: %w[actioncable-v1-json])
    assert_equal({ "type" => "welcome" }, heard(client))
    client.send_text(JSON.generate(command: "subscribe", identifier: IDENTIFIER))
    assert_equal({ "type" => "confirm_subscription", "identifier" => IDENTIFIER }, heard(client))
    client
  end

  def act(client, action, **data)
    client.send_text(JSON.generate(command: "message", identifier: IDENTIFIER, data: JSON.generate(action: action, **data)))
  end

  def heard(client)
    wait_until("a message of Action Cable") do
      message = JSON.parse(client.receive.last)
      message unless message["type"] == "ping"
    end
  end

  def told(client) = heard(client).fetch("message")

  def wait_for_log(server, pattern)
    wait_until("#{pattern.inspect} in the log") { File.read(server.path("log/development.log")).match(pattern) }
  end
end
