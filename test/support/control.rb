# frozen_string_literal: true

require "json"
require "stringio"
require "time"
require_relative "http_client"

module Fairlead
  module Test
    # For test cases that steer a server (started with CONTROL) through its control server and with `fairlead ctl`.
    module Controlled
      TOKEN = "s3cret"
      STATE = "server.state"
      FLAGS = ["--control-url", "tcp://127.0.0.1:0", "--control-token", TOKEN, "--state", STATE].freeze

      # Returns the contents of the server's state file.
      def state(server) = Fairlead::Control::StateFile.read(server.path(STATE))

      # Returns the response of the control server, or of the health endpoints at +url+.
      def control(server, target, url: state(server).fetch("control_url"))
        client = adopt(TCPSocket.new("127.0.0.1", Integer(url[/\d+\z/], 10)))
        client.get(target)
      ensure
        client&.close
      end

      def command(server, name) = control(server, "/#{name}?token=#{TOKEN}")

      def json(server, name) = JSON.parse(command(server, name).body)

      # Waits until the block returns true for the response of /status; returns that response.
      def wait_for_status(server, what, seconds: 20)
        wait_until(what, seconds: seconds) do
          status = json(server, "status")
          status if yield(status)
        rescue SystemCallError, KeyError, HttpClient::CutOff
          nil # a hot restart is in progress
        end
      end

      # Runs `fairlead ctl` in this process: [exit status, output, errors].
      def ctl(*arguments)
        output = StringIO.new
        errors = StringIO.new
        [Fairlead::Control::Tool.run(arguments.map(&:to_s), output: output, errors: errors), output.string, errors.string]
      end
    end
  end
end
