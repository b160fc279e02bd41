# frozen_string_literal: true

require_relative "event_stream"
require_relative "http_client"
require_relative "rack_apps"
require_relative "web_socket"
require_relative "web_socket/pool"

module Fairlead
  module Test
    # What a test case in test/integration/real_time includes: servers whose application upgrades what it can, and clients.
    module RealTimeServing
      include HttpServing
      include WebSockets
      include EventStreams

      # The handler that does what it is told: a message is Ruby code, evaluated where +client+ is the client; the result
      # comes back behind "= ", an exception behind "! ".
      CONSOLE = <<~'RUBY'
        def on_open(client) = (@client = client)

        def on_message(client, data)
          client.write("= #{eval(data).inspect}")
        rescue StandardError, ScriptError => e
          client.write("! #{e.class}")
        end
      RUBY

      # A server whose every WebSocket and event stream has a Handler of its own, a class of +code+. Plain requests evaluate
      # what is in x-code; the answer is the result. +setup+ comes before the class.
      def pushing(code, *arguments, setup: "", headers: {}, **options)
        serve(unlinted(<<~RUBY, setup: "#{setup}\nclass Handler\n#{code}\nend"), *arguments, **options)
          unless env["rack.upgrade?"]
            code = env["HTTP_X_CODE"]&.dup&.force_encoding("UTF-8")
            next [200, { "content-type" => "text/plain" }, [code ? eval(code).inspect : "plain"]]
          end
          env["rack.upgrade"] = Handler.new
          [200, #{headers.inspect}, []]
        RUBY
      end

      # Has a client of CONSOLE evaluate +code+, and returns what comes back. Other messages stay where they are.
      def told(client, code, seconds: 20)
        client.send_text(code)
        client.wait_for("an answer to #{code}", seconds) { client.over? || client.messages.any? { |_, data| data.start_with?("= ", "! ") } }
        index = client.messages.index { |_, data| data.start_with?("= ", "! ") }
        index ? client.messages.delete_at(index).last.delete_prefix("= ") : client.receive
      end

      # What a client of CONSOLE has heard once all that was published before has been delivered, which is after #publish, and
      # the blocks of its subscriptions have run.
      def heard(client)
        told(client, "client.subscribe('the end') { client.write('the end') } && client.publish('the end', 'the end')")
        client.wait_for("the end") { client.messages.include?([:text, "the end"]) }
        client.messages.slice!(0..).map(&:last) - ["the end"]
      end

      # Has a plain request evaluate +code+, and returns what comes back.
      def requested(server, code) = get(server, "/", "x-code" => code).body

      # Whether the server still serves a plain request and a WebSocket that was open before.
      def assert_served(server, client = nil)
        assert_equal "plain", get(server).body
        return unless client

        client.ping("still there?")
        assert_equal "still there?", client.receive_pong
      end

      # Whether the log on standard error has that many entries, no more. What goes on with the line before is no entry.
      def assert_logged(server, count)
        wait_until("#{count} lines in the log") { log_lines(server).size >= count }
        assert_equal count, log_lines(server).size
      end

      def log_lines(server) = server.stderr.lines(chomp: true).grep_v(/\A\s/)
    end
  end
end
