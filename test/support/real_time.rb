# frozen_string_literal: true

require_relative "event_stream"
require_relative "http_client"
require_relative "rack_apps"
require_relative "web_socket"
require_relative "web_socket/pool"

module Fairlead
  module Test
    # For test cases in test/integration/real_time: servers with an application that upgrades requests, and clients.
    module RealTimeServing
      include HttpServing
      include WebSockets
      include EventStreams

      # A handler that evaluates each message as Ruby code, in which +client+ is the client. It sends the result behind "= ",
      # or an exception behind "! ".
      CONSOLE = <<~'RUBY'
        def on_open(client) = (@client = client)

        def on_message(client, data)
          client.write("= #{eval(data).inspect}")
        rescue StandardError, ScriptError => e
          client.write("! #{e.class}")
        end
      RUBY

      # Starts a server that gives every WebSocket and event stream a new Handler, a class with +code+. For plain requests it
      # evaluates the code in x-code, and responds with the result. +setup+ comes before the class.
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

      # Makes a client of CONSOLE evaluate +code+, and returns the result. Other messages stay unread.
      def told(client, code, seconds: 20)
        client.send_text(code)
        client.wait_for("the result of #{code}", seconds) { client.over? || client.messages.any? { |_, data| data.start_with?("= ", "! ") } }
        index = client.messages.index { |_, data| data.start_with?("= ", "! ") }
        index ? client.messages.delete_at(index).last.delete_prefix("= ") : client.receive
      end

      # Returns the messages that a client of CONSOLE has received from everything published so far, after the blocks of its
      # subscriptions have run.
      def heard(client)
        told(client, "client.subscribe('the end') { client.write('the end') } && client.publish('the end', 'the end')")
        client.wait_for("the end") { client.messages.include?([:text, "the end"]) }
        client.messages.slice!(0..).map(&:last) - ["the end"]
      end

      # Makes a plain request evaluate +code+, and returns the result.
      def requested(server, code) = get(server, "/", "x-code" => code).body

      # Asserts that the server still serves a plain request and a WebSocket that was open before.
      def assert_served(server, client = nil)
        assert_equal "plain", get(server).body
        return unless client

        client.ping("still there?")
        assert_equal "still there?", client.receive_pong
      end

      # Asserts that the log on standard error has exactly that many entries. A continuation line is not an entry.
      def assert_logged(server, count)
        wait_until("#{count} lines in the log") { log_lines(server).size >= count }
        assert_equal count, log_lines(server).size
      end

      def log_lines(server) = server.stderr.lines(chomp: true).grep_v(/\A\s/)
    end
  end
end
