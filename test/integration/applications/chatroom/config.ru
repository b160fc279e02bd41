# frozen_string_literal: true

# The simplest chatroom: a page, a socket, and every visitor receives all messages. Written like before Rack Push: the object
# is the connection, and its callbacks take no client.
require "fairlead/compat/upgrade"

# A visitor.
class Chatroom
  def initialize(env)
    @name = Rack::Utils.unescape_path(env["PATH_INFO"]).delete_prefix("/chat/").force_encoding("UTF-8")
  end

  def on_open
    write "Welcome, #{@name}. There are #{count} of us."
    each { |other| other.write "#{@name} came in." }
  end

  def on_message(data)
    text = "#{@name}: #{data}"
    write text
    each { |other| other.write text }
    close if data == "bye"
  end

  def on_shutdown = write("The room closes.")
  def on_close = each { |other| other.write "#{@name} went out." }
end

PAGE = <<~HTML
  <!DOCTYPE html>
  <meta charset="utf-8">
  <title>Ugly chatroom</title>
  <form id="form"><input id="text" autofocus disabled> <button>Say</button></form>
  <pre id="log"></pre>
  <script>
    const name = prompt("Your name?") || "somebody";
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/chat/${encodeURIComponent(name)}`);
    const log = document.getElementById("log"), text = document.getElementById("text");
    socket.onopen = () => { text.disabled = false };
    socket.onmessage = (event) => { log.textContent += event.data + "\\n" };
    socket.onclose = () => { text.disabled = true };
    document.getElementById("form").onsubmit = () => { socket.send(text.value); text.value = ""; return false };
  </script>
HTML

run(lambda do |env|
  if env["upgrade.websocket?"]
    env["upgrade.websocket"] = Chatroom.new(env)
    [0, {}, []]
  else
    [200, { "content-type" => "text/html; charset=utf-8" }, [PAGE]]
  end
end)
