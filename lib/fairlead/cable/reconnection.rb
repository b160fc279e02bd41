# frozen_string_literal: true

require "json"

module Fairlead
  module Cable
    # Calls the application with the request of a client that has come from another process, as if the client connected. So the
    # application's middleware runs, and Rails decides. There is no response: the client is connected.
    class Reconnection
      def initialize(client, moved, app)
        @client = client
        @moved = moved
        @app = app
        @env = client.env
      end

      # The Socket; nil if the application refuses the request, or the sub-protocol.
      def socket
        status = request
        socket = @env["rack.upgrade"]
        return refuse(status) unless status < 300 && continues?(socket)

        socket.begin_again(@client, @moved)
        socket
      end

      private

      # Returns the status.
      def request
        Handover::Request.forget_middleware(@env)
        # Where the application is mounted is its own business.
        @env.update("SCRIPT_NAME" => +"", "PATH_INFO" => @env["REQUEST_PATH"].to_s.dup, "rack.upgrade?" => @client.protocol)
        status, headers, body = @app.call(@env)
        status = status.to_i
      rescue StandardError, ScriptError => e
        status = 500
        raise
      ensure
        attempt { body.close } if body.respond_to?(:close)
        finish(status, headers, e) if status
      end

      # As after a response: an exception is logged, and the next one is called.
      def finish(status, headers, error)
        @env["rack.after_reply"].each { |callable| attempt { callable.call } }
        @env["rack.response_finished"].reverse_each { |callable| attempt { callable.call(@env, status, headers, error) } }
      end

      def attempt
        yield
      rescue StandardError, ScriptError => e
        Background.current.log.app_failed(e, nil)
      end

      def continues?(socket)
        socket.is_a?(Socket) && socket.is_a?(EventStream) == (@client.protocol == :sse) && socket.protocol == @moved.protocol
      end

      # Tells the client, as Rails does. Returns nil.
      def refuse(status)
        reason, reconnect = reason(status)
        message = JSON.generate(type: "disconnect", reason: reason, reconnect: reconnect)
        @client.protocol == :sse ? EventStream.send_control(@client, message) : @client.write(message)
        @client.close(Socket::NORMAL)
        nil
      end

      # A reason of Rails, and whether the client may connect again.
      def reason(status)
        case status
        when 300..399, 401, 403 then ["unauthorized", false]
        when 400..499 then ["invalid_request", true]
        else ["server_restart", true]
        end
      end
    end
  end
end
