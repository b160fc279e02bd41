# frozen_string_literal: true

require "json"
require_relative "needed_gems"
require_relative "real_time"

module Fairlead
  module Test
    # For test cases in test/integration/cable: servers with Action Cable, without the rest of Rails, and clients that speak its
    # protocol.
    module ActionCableServing
      include RealTimeServing
      include NeededGems

      # A plain channel, with actions that tests call by name. Each application adds its own channels. `/eval` evaluates the
      # body of a request.
      APP = <<~'RUBY'
        require "logger"
        require "concurrent"
        require "action_cable"

        class Connection < ActionCable::Connection::Base
          identified_by :name
          def connect = self.name = request.params["name"] || reject_unauthorized_connection
        end

        class RoomChannel < ActionCable::Channel::Base
          def subscribed = stream_from(params[:room] || "room")
          def speak(data) = ActionCable.server.broadcast(params[:room] || "room", { from: name, text: data["text"] })
          def answer(data) = transmit({ answer: data["text"] })
          def unsubscribed = File.write("left", "#{name}\n", mode: "a")
        end

        ActionCable.server.config.tap do |config|
          config.cable = { "adapter" => ENV.fetch("ADAPTER", "fairlead") }
          config.connection_class = -> { Connection }
          config.logger = Logger.new("cable.log")
          config.allowed_request_origins = ["http://good.example"]
        end

        EVALUATE = lambda do |env|
          code = env["HTTP_X_CODE"] or next [200, { "content-type" => "text/plain" }, ["page"]]
          [200, { "content-type" => "text/plain" }, [eval(code).inspect]]
        end

        map("/cable") { run ActionCable.server }
        map("/") { run EVALUATE }
      RUBY

      ORIGIN = { "origin" => "http://good.example" }.freeze
      PROTOCOLS = %w[actioncable-v1-json actioncable-unsupported].freeze
      ROOM = { channel: "RoomChannel" }.freeze

      def setup
        super
        needs_gems("actioncable")
      end

      # Starts the application; +code+ comes before its last lines. With another adapter than ours, native sockets have to be
      # asked for.
      def cable(*arguments, code: "", adapter: "fairlead", sockets: "native", environment: {})
        app = APP.sub("EVALUATE = ") { "#{code}\nEVALUATE = " }
        serve(app, "--cable-sockets", sockets, *arguments, environment: { "ADAPTER" => adapter, **environment })
      end

      # Opens a connection, and takes its welcome.
      def connected(server, name = "ann", **options)
        client = web_socket(server, "/cable?name=#{name}", headers: ORIGIN, protocols: PROTOCOLS, **options)
        assert_equal "actioncable-v1-json", client.protocol
        assert_equal({ "type" => "welcome" }, heard(client))
        client
      end

      # Opens a connection with a subscription.
      def joined(server, name = "ann", to: ROOM, **options)
        client = connected(server, name, **options)
        subscribe(client, to)
        client
      end

      def subscribe(client, to = ROOM, answer: "confirm_subscription")
        command(client, "subscribe", to)
        assert_equal({ "identifier" => JSON.generate(to), "type" => answer }, heard(client))
      end

      def command(client, name, to = ROOM, **more)
        client.send_text(JSON.generate({ command: name, identifier: JSON.generate(to), **more }))
      end

      def act(client, action, to: ROOM, **data) = command(client, "message", to, data: JSON.generate(action: action, **data))

      # Returns the next message that is not a ping.
      def heard(client)
        wait_until("a message of Action Cable") do
          message = JSON.parse(client.receive.last)
          message unless message["type"] == "ping"
        end
      end

      # Returns the content of the next message of a subscription.
      def told(client) = heard(client).fetch("message")

      # Returns what the application says to some code.
      def evaluate(server, code) = get(server, "/", "x-code" => code).body

      def log(server) = File.read(server.path("cable.log"))

      def wait_for_log(server, pattern) = wait_until("#{pattern.inspect} in the log") { log(server).match(pattern) }
    end
  end
end
