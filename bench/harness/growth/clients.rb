# frozen_string_literal: true

module Bench
  module Growth
    # Clients that hold their connections open: `open(target)` and `opened` (waits until the server has accepted and answered), then `open?`
    # and `close`.
    module Clients
      # Clients that are opened at the same time.
      AT_ONCE = 50
      SECONDS = 60

      module_function

      # Opens +number+ clients; yields the number of each to make one.
      def open(number, &make)
        IdleConnections.allow_descriptors(number)
        Array.new(number) { |index| index }.each_slice(AT_ONCE).flat_map { |indexes| indexes.map(&make).each(&:opened) }
      end

      # A client of each kind for a target.
      def kept(target)
        target.running.server.idle_after == :response ? Http1.new(target) : Silent.new(target)
      end

      def http2(target) = Http2Client.new(target)

      def websocket(target) = WebSocket.new(target, path: target.dialect.chat)

      def events(target) = Events.new(target, path: target.dialect.events)

      # WebSockets and event streams with a handler that lets them move to another worker.
      def moving_websocket(target) = WebSocket.new(target, path: "/events?channel=all")

      def moving_events(target) = Events.new(target, path: "/events?channel=all")

      # Raises an Error unless all are open.
      def check(clients)
        closed = clients.count { |client| !client.open? }
        raise Error, "#{closed} of #{clients.size} connections were closed" if closed.positive?
      end

      # A connection of HTTP/1, with TLS or without, on which a request is sent. +head+: its first lines.
      class Http1 < IdleConnections
        def initialize(target, head: "GET #{target.path} HTTP/1.1\r\n")
          super(target.running.port, tls: target.tls)
          @stream.write("#{head}host: 127.0.0.1\r\n\r\n")
        end

        def opened
          deadline { read_response }
        end

        # True if the server has not closed it. Reads what has come.
        def open?
          loop do
            found = @stream.read_nonblock(1 << 16, exception: false)
            return found.is_a?(Symbol) unless found.is_a?(String)
          end
        rescue SystemCallError, OpenSSL::SSL::SSLError
          false
        end

        # Closes without ending properly: the server learns at once that nobody waits for the response.
        def reset
          @socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
          close
        end

        private

        # A response that does not come is an error, not a hang.
        def deadline
          raise Error, "no response within #{SECONDS} s" unless @socket.wait_readable(SECONDS)

          yield
        rescue SystemCallError, EOFError => e
          raise Error, "a connection broke: #{e.message}"
        end

        def read_head(status)
          line = @stream.gets
          raise Error, "a client was refused: #{line.inspect}" unless line.to_s.include?(" #{status} ")

          nil until @stream.gets.to_s.chomp.empty?
        end
      end

      # An open connection without a request, for servers that cannot keep many after a response (Server#idle_after).
      class Silent < IdleConnections
        def initialize(target)
          super(target.running.port, tls: target.tls)
        end

        def opened; end

        def say(bytes)
          @socket.write(bytes)
        end

        # Reads the response to what it has said.
        def answer
          read_response
        end

        # Reads up to the end; false if that does not come within the time.
        def wait_until_closed(seconds)
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
          loop do
            rest = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
            return false unless rest.positive? && @socket.wait_readable(rest)
            return true if @socket.read_nonblock(1 << 12, exception: false).nil?
          end
        rescue SystemCallError
          true
        end
      end

      # A connection that reads nothing of its response until it is asked to.
      class SlowReader < Http1
        # The least that Linux gives a socket, so that the rest stays with the server.
        RECEIVE_BUFFER = 2304

        def initialize(target, path:)
          super(target, head: "GET #{path} HTTP/1.1\r\n")
        end

        # The first bytes have come.
        def opened
          deadline { nil }
        end

        # Reads the response to its end.
        def finish
          deadline { read_response }
        end

        private

        def connect(port)
          Socket.new(:INET, :STREAM).tap do |socket|
            socket.setsockopt(:SOCKET, :RCVBUF, RECEIVE_BUFFER)
            socket.bind(Addrinfo.tcp(IdleConnections.next_source, 0))
            socket.connect(Addrinfo.tcp("127.0.0.1", port))
          end
        end
      end

      # A WebSocket.
      class WebSocket < Http1
        def initialize(target, path:)
          super(target, head: "GET #{path} HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" \
                              "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
        end

        def opened
          deadline { read_head(101) }
        end
      end

      # An event stream.
      class Events < Http1
        def initialize(target, path:)
          super(target, head: "GET #{path} HTTP/1.1\r\naccept: text/event-stream\r\n")
        end

        def opened
          deadline { read_head(200) }
        end
      end
    end
  end
end
