# frozen_string_literal: true

require "uri"
require_relative "action_cable"

module Fairlead
  module Test
    # For test cases in test/integration/cable/extended: clients with AnyCable's sub-protocol, and channels for them.
    module ExtendedCable
      include ActionCableServing

      PROTOCOL = "actioncable-v1-ext-json"
      ROOM = ActionCableServing::ROOM
      PROCESS = { channel: "ProcessChannel" }.freeze
      CODE = <<~'RUBY'
        class HandlerChannel < ActionCable::Channel::Base
          def subscribed = stream_from("room") { |message| transmit({ handled: message }) }
        end

        class ProcessChannel < ActionCable::Channel::Base
          def pid = transmit(Process.pid)
        end

        class TypingChannel < ActionCable::Channel::Base
          def subscribed = stream_from("typing", whisper: true)
        end

        class PresentChannel < ActionCable::Channel::Base
          include Fairlead::Cable::Presence

          def subscribed
            stream_from("present")
            join_presence(info: { name: name }) if params[:join]
            shares_presence("present") unless params[:alone]
            reject if params[:reject]
          end

          def follow(data) = join_presence("present", id: data["id"], info: { name: data["name"] })
          def unfollow = leave_presence
        end
      RUBY

      # Starts the application with two workers.
      def extended_cable(*arguments, **options)
        options[:code] = "#{CODE}#{options[:code]}"
        cable("-w", 2, "-t", 2, *arguments, **options)
      end

      # Opens a connection, and returns it with its welcome. +more+: parameters of the URL.
      def welcomed(server, name = "ann", headers: {}, protocols: [PROTOCOL], **more)
        query = URI.encode_www_form(name: name, **more)
        client = web_socket(server, "/cable?#{query}", headers: ORIGIN.merge(headers), protocols: protocols)
        [client, heard(client)]
      end

      # Opens a connection with a subscription.
      def joined(server, name = "ann", to: ROOM, **more)
        client, = welcomed(server, name, **more)
        subscribe(client, to)
        client
      end

      # Broadcasts a message to the stream of RoomChannel, or to another one.
      def broadcast(server, message, stream = "room")
        assert_equal "true", evaluate(server, "ActionCable.server.broadcast(#{stream.inspect}, #{message.inspect}) ? true : true")
      end

      # Returns the contents of the next +count+ messages of subscriptions.
      def heard_messages(client, count) = Array.new(count) { heard(client).fetch("message") }

      # Asserts that the client gets nothing before its action is answered.
      def assert_nothing_heard(client, to: ROOM)
        act(client, "answer", to: to, text: "nothing")
        assert_equal({ "answer" => "nothing" }, told(client))
      end

      def position(message) = { message["stream_id"] => message.slice("epoch", "offset") }
    end
  end
end
