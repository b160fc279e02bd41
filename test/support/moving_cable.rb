# frozen_string_literal: true

require_relative "extended_cable"
require_relative "restarts"

module Fairlead
  module Test
    # For test cases in test/integration/cable/restarts: an application of Action Cable with code that changes with the file `version`.
    module MovingCable
      include ExtendedCable
      include Restarts

      # Channels that answer and decide by the version.
      VERSIONS = <<~'RUBY'
        VERSION = File.exist?("version") ? File.read("version").strip : "1"

        class RoomChannel
          def answer(data) = transmit({ answer: data["text"], version: VERSION, name: name })
          def subscribed
            File.write("events", "subscribed #{name} #{VERSION}\n", mode: "a")
            transmit({ hello: VERSION })
            stream_from(params[:room] || "room")
          end

          def unsubscribed = File.write("events", "unsubscribed #{name} #{VERSION}\n", mode: "a")
        end

        class PlainChannel < ActionCable::Channel::Base
          def subscribed = stream_from("room")
          def answer(data) = transmit({ answer: data["text"], version: VERSION, name: name })
        end

        class BlockChannel < ActionCable::Channel::Base
          def subscribed = stream_from("room", ->(message) { transmit({ block: VERSION, got: message }) }, coder: ActiveSupport::JSON)
        end

        class FollowChannel < ActionCable::Channel::Base
          def subscribed = stream_from("room")
          def follow(data) = stream_from(data["name"])
          def unfollow(data) = stop_stream_from(data["name"])
          private def moves? = super && params[:state].nil?
        end

        class FickleChannel < ActionCable::Channel::Base
          def subscribed
            stream_from("room")
            return if VERSION == "1"

            case params[:how]
            when "reject" then reject
            when "raise" then raise "broken"
            when "kill" then Thread.exit
            end
          end
        end

        class OtherChannel < ActionCable::Channel::Base
        end

        class OldChannel < ActionCable::Channel::Base
          def subscribed = stream_from("room")
        end
        Object.send(:remove_const, :OldChannel) unless VERSION == "1"

        Connection.prepend(Module.new do
          def connect
            sleep(0.005) while File.exist?("wait") && VERSION != "1"
            raise "no database" if VERSION != "1" && request.params["how"] == "raise"
            reject_unauthorized_connection if VERSION != "1" && request.params["how"] == "reject"
            reject_unauthorized_connection unless request.params["user"] == env["REMOTE_USER"]
            super
          end
        end)

        # Middleware, which knows a user in the old version only. In the new one, it answers some requests itself.
        class Guard
          def initialize(app) = @app = app

          def call(env)
            query = Rack::Utils.parse_query(env["QUERY_STRING"])
            env["REMOTE_USER"] = query["user"] if query["user"] && VERSION == "1"
            status = query["status"] unless VERSION == "1"
            env["rack.response_finished"].push(->(*) { raise "finished" }) if query["finish"] && VERSION != "1"
            status ? [Integer(status), {}, []] : @app.call(env)
          end
        end
        use Guard
      RUBY

      PLAIN = { channel: "PlainChannel" }.freeze
      HELLO = { "hello" => "1" }.freeze

      def moving_cable(*arguments, code: "", **options)
        cable("-w", 2, "-t", 2, "--drain-spread", "0.2", *arguments, code: "#{VERSIONS}#{ExtendedCable::CODE}#{code}", **options)
      end

      # Opens a connection with a subscription to RoomChannel, or another channel.
      def in_room(server, name = "ann", to: ROOM, query: "", protocols: PROTOCOLS)
        client = web_socket(server, "/cable?name=#{name}#{query}", headers: ORIGIN, protocols: protocols)
        assert_equal({ "type" => "welcome" }, heard(client))
        enter(client, to)
        client
      end

      def enter(client, channel)
        command(client, "subscribe", channel)
        assert_equal HELLO, told(client) if channel[:channel] == "RoomChannel"
        assert_equal({ "identifier" => JSON.generate(channel), "type" => "confirm_subscription" }, heard(client))
      end

      # Restarts into the second version.
      def renew(server, signal: :USR1, kind: "phased restart", times: 1)
        server.write("version", "2")
        server.signal(signal)
        restarted(server, kind, times: times)
      end

      # Returns the answer to an action, with the version that answers.
      def asked(client, text, to: ROOM)
        act(client, "answer", to: to, text: text)
        told(client)
      end

      def answer(text, version: "2", name: "ann") = { "answer" => text, "version" => version, "name" => name }

      def speak(server, text, stream = "room") = evaluate(server, "ActionCable.server.broadcast(#{stream.inspect}, #{text.inspect})")

      # Asserts that the client has got nothing but pings.
      def assert_quiet(client)
        client.ping("quiet?")
        client.receive_pong
        assert_empty(client.messages.map { |_, text| JSON.parse(text) }.reject { |message| message["type"] == "ping" })
      end

      # Returns the close code of a client.
      def ended(client)
        loop { client.receive }
      rescue WebSocket::Closed => e
        e.code
      end

      def events(server) = File.readlines(server.path("events"), chomp: true)
    end
  end
end
