# frozen_string_literal: true

module Fairlead
  module Soak
    # WebSockets and event streams.
    module RealTime
      # Echoes messages; a text that begins with "/" is a command.
      class Talk
        def self.on_takeover(client, state)
          new(*JSON.parse(state)).tap { |talk| talk.take_over(client) }
        end

        def self.of(asked) = new(asked.id, *%w[channel later pattern].map { |name| asked[name] })

        def initialize(id, channel, later, pattern)
          @id = id
          @channel = channel
          @later = later
          @pattern = pattern
        end

        def on_open(client)
          Ends.open(:clients)
          subscribe(client) if @channel
          client.write("ready #{format("%x", @id)}")
        end

        def on_message(client, data)
          return order(client, *data.split) if data.start_with?("/")
          return @thread = Thread.new { client.write(data) } if @later

          client.write(data)
        end

        def on_close(_client)
          Ends.close(:clients) unless @handed_over
        end

        # It counts as closed from here on; on_close may follow all the same, if the connection ends on its way.
        def on_handover(_client)
          @thread&.join
          @handed_over = true
          Ends.close(:clients)
          JSON.generate([@id, @channel, @later, @pattern])
        end

        def take_over(client)
          Ends.open(:clients)
          subscribe(client) if @channel
        end

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
        def all = { "talk" => method(:talk), "publish" => method(:publish_for), "number" => method(:publish_number) }

        def message(number, id, size) = "#{number} #{Pattern.bytes(id, size)}"

        def talk(asked)
          return [426, asked.fields, []] unless asked.env["rack.upgrade?"]

          asked.env["rack.upgrade"] = Talk.of(asked)
          [200, asked.fields, []]
        end

        # A request that publishes so many messages.
        def publish_for(asked)
          sent = publish(asked["channel"], asked["count"], asked["size"], asked["owner"])
          [200, asked.fields, [sent ? "sent" : "lost"]]
        end

        # A request that publishes the message of this number, with the id of the process.
        def publish_number(asked)
          bytes = Pattern.bytes(asked["owner"].to_i(16), asked.size)
          sent = Fairlead.publish(asked["channel"], "#{asked["number"]} #{Process.pid} #{bytes}")
          [200, asked.fields, [sent ? "sent" : "lost"]]
        end

        def publish(channel, count, size, id)
          Array.new(count.to_i) { |number| Fairlead.publish(channel, message(number, id.to_i(16), size.to_i)) }.all?
        end
      end
    end
  end
end
