# frozen_string_literal: true

# The real-time scenarios with faye-websocket, which takes over sockets by hijacking and runs them on an event loop of its
# own. Who is there is an Array.
require "faye/websocket"

Faye::WebSocket.load_adapter("puma") if Faye::WebSocket.respond_to?(:load_adapter)

clients = []

# Sending is up to the event loop, so that only its thread touches the sockets.
publish = ->(message) { EventMachine.schedule { clients.each { |client| client.send(message) } } }

join = lambda do |client|
  client.on(:open) { clients << client }
  client.on(:close) { clients.delete(client) }
  client.on(:message) { |event| publish.call(event.data) }
end

run(lambda do |env|
  if Faye::WebSocket.websocket?(env)
    client = Faye::WebSocket.new(env)
    if env["PATH_INFO"] == "/echo"
      client.on(:message) { |event| client.send(event.data) }
    else
      join.call(client)
    end
    next client.rack_response
  end
  if Faye::EventSource.eventsource?(env)
    client = Faye::EventSource.new(env)
    join.call(client)
    next client.rack_response
  end
  publish.call(env["rack.input"].read) if env["REQUEST_METHOD"] == "POST"
  [200, { "content-type" => "text/plain" }, ["ready\n"]]
end)
