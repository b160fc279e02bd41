# frozen_string_literal: true

# What the real-time scenarios ask of a server with `rack.upgrade`. Fairlead, iodine and agoo run it unchanged.
#
#   /echo     sends every message back
#   /chat     sends every message to all who are there
#   /events   an event stream of the same; POST /publish puts a message into it

# The bare cost of a message through the application.
module Echo
  def self.on_message(client, data)
    client.write(data)
  end
end

# A room in which everybody hears everybody.
module Chat
  def self.on_open(client)
    client.subscribe("chat")
  end

  def self.on_message(client, data)
    client.publish("chat", data)
  end
end

# The same for those who only listen.
module Events
  def self.on_open(client)
    client.subscribe("chat")
  end
end

SERVER = %i[Fairlead Iodine Agoo].find { |name| Object.const_defined?(name) }.then { |name| Object.const_get(name) }
HANDLERS = { ["/echo", :websocket] => Echo, ["/chat", :websocket] => Chat, ["/events", :sse] => Events }.freeze

run(lambda do |env|
  if env["REQUEST_METHOD"] == "POST"
    SERVER.publish("chat", env["rack.input"].read)
    next [204, {}, []]
  end
  env["rack.upgrade"] = HANDLERS[[env["PATH_INFO"], env["rack.upgrade?"]]]
  [200, { "content-type" => "text/plain" }, ["ready\n"]]
end)
