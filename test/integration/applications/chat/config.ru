# frozen_string_literal: true

# A chat; the path is the visitor's name: ws://localhost:9292/ann
require "fairlead/compat/iodine"

# A visitor.
class Chat
  def self.call(env)
    return [200, { "content-type" => "text/plain" }, ["Come in by WebSocket."]] unless env["rack.upgrade?"] == :websocket

    env["rack.upgrade"] = new(Rack::Utils.unescape_path(env["PATH_INFO"]).delete_prefix("/").force_encoding("UTF-8"))
    [0, {}, []]
  end

  def initialize(name)
    @name = name.empty? ? "somebody" : name
  end

  def on_open(client)
    client.subscribe(:chat)
    client.publish(:chat, "#{@name} joined.")
  end

  def on_message(client, text)
    client.publish(:chat, "#{@name}: #{text}")
  end

  def on_shutdown(client) = client.write("The server is going away.")
  def on_close(client) = client.publish(:chat, "#{@name} left.")
end

run Chat
