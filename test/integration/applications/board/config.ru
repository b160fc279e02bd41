# frozen_string_literal: true

# A board: writers use a WebSocket, readers an event stream, and one handler serves both. It uses only Rack Push, so it runs
# on any server that has it.
module Board
  class << self
    def call(env)
      case env["rack.upgrade?"]
      when :websocket, :sse
        return [403, { "content-type" => "text/plain" }, ["no"]] if env["QUERY_STRING"] == "banned"

        env["rack.upgrade"] = self
        [200, { "x-board" => "main" }, []]
      else [426, { "content-type" => "text/plain", "upgrade" => "websocket" }, ["There is nothing to see."]]
      end
    end

    def on_open(client)
      client.subscribe("board")
      client.write("you are #{client.protocol == :sse ? "reading" : "writing"}")
    end

    def on_message(client, text)
      client.publish("board", text)
      client.close if text == "bye"
    end
  end
end

run Board
