# frozen_string_literal: true

require "json"
require_relative "real_time"

module Fairlead
  module Test
    # For test cases of messages with a history: their publishers, and clients of the console (RealTimeServing).
    module KeptMessages
      include RealTimeServing

      HISTORY = "Fairlead::PubSub::HISTORY"

      # A receipt is for the messages before its question, and the next question comes after it. The server has handled an answer when it
      # answers a later ping.
      def await_receipts(client)
        3.times do |number|
          client.ping(number.to_s)
          client.receive_pong
        end
      end

      # Code that publishes each of the texts to the channel "room".
      def publish(*texts) = texts.map { |text| "Fairlead.publish('room', #{JSON.generate(text).inspect}, #{HISTORY})" }.join(";")

      def text(inspected) = inspected.delete('"')

      def heard_from(client, count)
        client.wait_for("#{count} messages") { client.messages.size >= count }
        client.messages.slice!(0..)
      end

      def received(client, count)
        client.wait_for("#{count} frames") { client.messages.size >= count }
        client.messages.slice!(0..).map { |_, data| JSON.parse(data) }
      end

      def messages(client, count) = received(client, count).map { |frame| frame["message"] }
    end
  end
end
