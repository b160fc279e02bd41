# frozen_string_literal: true

require "socket"

module Fairlead
  module Control
    # Sends a command to a control server and returns the response.
    class Client
      # The server cannot be reached, or refuses.
      class Failure < Error; end

      # Seconds that each step may take.
      SECONDS = 10

      attr_reader :url, :token

      # +url+: tcp://HOST:PORT, unix:///PATH or unix://@NAME.
      def initialize(url, token)
        @url = url
        @token = token
      end

      # The body of the response to +command+. Raises Failure.
      def get(command) = call("GET", command)

      # The same for a command that changes the server. +command+ may have a query.
      def post(command) = call("POST", command)

      # Yields the parts of the response to +target+, including its head, as they arrive. A stream may be silent for any time.
      def stream(target)
        socket = connect
        request(socket, target)
        loop { yield socket.readpartial(64 * 1024) }
      rescue EOFError
        nil
      rescue Errno::ECONNREFUSED, Errno::ENOENT, SocketError => e
        raise Failure, "#{@url}: #{Error.reason(e)}"
      ensure
        socket&.close
      end

      # True if a server listens there.
      def reachable?
        connect.close
        true
      rescue SystemCallError, SocketError
        false
      end

      private

      def call(method, command)
        status, body = ask(method, command)
        return body if status == 200

        raise Failure, "wrong or missing token (-T, or -S with the state file)" if status == 403

        raise Failure, "#{command}: #{body.strip}"
      end

      def ask(method, command)
        socket = connect
        request(socket, command, method)
        head, body = read(socket).split("\r\n\r\n", 2)
        [Integer(head.to_s[%r{\AHTTP/1\.[01] (\d{3})}, 1] || raise(Failure, "#{@url} does not answer in HTTP"), 10), body.to_s]
      rescue SystemCallError, SocketError => e
        raise Failure, "#{@url}: #{Error.reason(e)}"
      ensure
        socket&.close
      end

      def request(socket, target, method = "GET")
        socket.write("#{method} /#{target} HTTP/1.1\r\nhost: localhost\r\n#{"authorization: Bearer #{@token}\r\n" if @token}\r\n")
      end

      def connect
        raise Failure, "the server has no control server: set control_url" if @url.nil?

        scheme, place = @url.sub(/\?.*/, "").split("://", 2)
        return Socket.unix(place.sub(/\A@/, "\0")) if scheme == "unix"
        raise Failure, "#{@url}: a control server has no TLS; use tcp://… or unix://…" if %w[ssl https].include?(scheme)

        host, _, port = place.to_s.rpartition(":")
        Socket.tcp(host.delete("[]"), port, connect_timeout: SECONDS)
      end

      def read(socket)
        text = +""
        while (part = receive(socket))
          text << part
        end
        text.force_encoding(Encoding::UTF_8)
      end

      # nil at the end.
      def receive(socket)
        raise Failure, "#{@url} did not answer within #{SECONDS} s" unless socket.wait_readable(SECONDS)

        socket.readpartial(64 * 1024)
      rescue EOFError
        nil
      end
    end
  end
end
