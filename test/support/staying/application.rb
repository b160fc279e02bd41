# frozen_string_literal: true

module Fairlead
  module Test
    class Staying
      # The application: its clients hear two channels, one of them with a history, or those in the query, with plus signs between
      # them. WebSockets get an answer to each message, which has the number of messages so far. `GET /publish?CHANNEL+TEXT`
      # publishes a text behind the name of the process, and `POST /publish?CHANNEL` a body as it is.
      APPLICATION = <<~'RUBY'
        VERSION = File.exist?("version") ? File.read("version").strip : "1"
        raise "this code is broken" if VERSION == "broken"

        class Listener
          def self.on_takeover(client, state)
            count, *channels = state.split
            new(channels, Integer(count, 10)).tap { |listener| listener.listen(client) }
          end

          def initialize(channels, count = 0)
            @channels = channels
            @count = count
          end

          def listen(client) = @channels.each { |channel| client.subscribe(channel) }

          def on_open(client)
            listen(client)
            client.write("ready")
          end

          def on_message(client, text)
            @count += 1
            number, size, flood = text.split(" ", 4).first(3).map(&:to_i)
            client.write("answer #{number} #{@count} #{size == text.bytesize}#{" " * flood}")
          end

          def on_handover(_client) = [@count, *@channels].join(" ")
        end

        run(lambda do |env|
          channel, *rest = env["QUERY_STRING"].split("+")
          if env["rack.upgrade?"]
            env["rack.upgrade"] = Listener.new(channel ? [channel, *rest] : %w[mail kept])
            next [200, {}, []]
          end
          if env["PATH_INFO"] == "/publish"
            text = env["REQUEST_METHOD"] == "POST" ? env["rack.input"].read : [channel, "worker-#{Process.pid}", *rest].join(" ")
            Fairlead.publish(channel, text, *[Fairlead::PubSub::HISTORY].select { channel.start_with?("kept") })
          end
          [200, { "content-type" => "text/plain" }, ["#{VERSION} #{Process.pid}"]]
        end)
      RUBY
    end
  end
end
