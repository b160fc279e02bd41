# frozen_string_literal: true

# Action Cable without the rest of Rails: one channel whose subscribers get what any of them says, and what a request
# publishes. CABLE, which precedes this text, is the configuration of its adapter.
require "action_cable"
require "logger"

# A room in which everybody hears everybody.
class ChatChannel < ActionCable::Channel::Base
  def subscribed
    stream_from "chat"
  end

  def speak(data)
    ActionCable.server.broadcast("chat", data["text"])
  end
end

ActionCable.server.config.tap do |config|
  config.cable = CABLE.dup
  config.logger = Logger.new(nil)
  config.connection_class = -> { ActionCable::Connection::Base }
  config.disable_request_forgery_protection = true
end

map("/cable") { run ActionCable.server }
map("/publish") do
  run(lambda do |env|
    ActionCable.server.broadcast("chat", env["rack.input"].read)
    [204, {}, []]
  end)
end
map("/") { run ->(_env) { [200, { "content-type" => "text/plain" }, ["ready\n"]] } }
