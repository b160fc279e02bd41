# frozen_string_literal: true

module Fairlead
  module Soak
    # WebSockets and event streams.
    module RealTime
      # Echoes messages; a text that begins with "/" is a command.
      class Talk
        def initialize(asked)
          @id = asked.id
          @channel = asked["channel"]
          @later = asked["later"]
          @pattern = asked["pattern"]
        end

        def on_open(client)
          Ends.open(:clients)
          subscribe(client) if @channel
          client.write("ready #{format("%x", @id)}")
        end

        def on_message(client, data)
          return order(client, *data.split) if data.start_with?("/")
          return Thread.new { client.write(data) } if @later

          client.write(data)
        end

        def on_close(_client) = Ends.close(:clients)

        private

        def subscribe(client)
          case @pattern
          when "redis" then client.subscribe("#{@channel}*", match: :redis)
          when "block" then client.subscribe(@channel) { |_, message| client.write(message) }
          else client.subscribe(@channel)
          end
        end

        def order(client, name, *arguments)
          case name
          when "/publish" then RealTime.publish(*arguments)
          when "/burst" then arguments[0].to_i.times { |number| client.write(RealTime.message(number, @id, arguments[1].to_i)) }
          when "/close" then client.close(4000, "asked")
          end
        end
      end

      class << self
        def all = { "talk" => method(:talk), "publish" => method(:publish_for) }

        def message(number, id, size) = "#{number} #{Pattern.bytes(id, size)}"

        def talk(asked)
          return [426, asked.fields, []] unless asked.env["rack.upgrade?"]

          asked.env["rack.upgrade"] = Talk.new(asked)
          [200, asked.fields, []]
        end

        # A request that publishes so many messages.
        def publish_for(asked)
          sent = publish(asked["channel"], asked["count"], asked["size"], asked["owner"])
          [200, asked.fields, [sent ? "sent" : "lost"]]
        end

        def publish(channel, count, size, id)
          Array.new(count.to_i) { |number| Fairlead.publish(channel, message(number, id.to_i(16), size.to_i)) }.all?
        end
      end
    end
  end
end
