# frozen_string_literal: true

require "socket"

module Bench
  module Drive
    # All threads of the application stall, requests pile up, and most of their clients leave. Measures the time from the end of the stall
    # to the first response for a client that has stayed. These clients came last. The shape's mix says how the others leave.
    class Stall
      CLOSE = "clients that close their connection"
      RESET = "clients that reset their connection"

      # The application stalls as long as this file exists; it adds a byte to the other one for each thread that stalls.
      SWITCH = "stalled"
      HELD = "held"

      REQUEST = "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"

      # Longest time for the requests to arrive, and for responses after the stall, in seconds.
      PATIENCE = 20

      # staying: number of the queued clients that stay. times: length of the stall, as a factor of the time for a measurement.
      def initialize(queued:, staying:, times:)
        @queued = queued
        @staying = staying
        @times = times
      end

      def units
        { many: "responses", one: "response" }
      end

      def clients(_shape)
        "#{@queued} requests during the stall; the clients of #{@queued - @staying} leave"
      end

      def warm_up(target, seconds)
        target.load_tool.measure(target.url, connections: target.shape.concurrency, seconds: seconds)
      end

      def measure(target, seconds)
        IdleConnections.allow_descriptors(@queued + target.shape.concurrency)
        stalled(target, seconds * @times) do |queued|
          staying = queued.pop(@staying)
          queued.each { |socket| leave(socket, target.shape.mix) }
          [queued.size, staying]
        end
      end

      def problem(_found); end

      def summary(found)
        first = found.stall["first_ms"]
        format("%s to the first useful response  %d of %d served, %d refused", first ? format("%.0f ms", first) : "no time",
               *found.stall.values_at("served", "stayed", "refused"))
      end

      private

      # Stalls the application; the block gets the clients that wait, and returns how many have left, and the others.
      def stalled(target, seconds)
        switch = target.running.site.write(SWITCH, "")
        finish = now + seconds
        sockets = hold(target)
        sockets += queued = queue(target.running.port, finish - (seconds / 4))
        left, staying = yield(queued)
        sleep [finish - now, 0].max
        File.unlink(switch)
        measurement(left, staying, *responses(staying))
      ensure
        File.unlink(switch) if switch && File.exist?(switch)
        sockets&.each(&:close)
      end

      # Occupies all threads.
      def hold(target)
        held = target.running.site.write(HELD, "")
        sockets = Array.new(target.shape.concurrency) { TCPSocket.new("127.0.0.1", target.running.port).tap { |socket| socket.write(REQUEST) } }
        deadline = now + PATIENCE
        until File.size(held) >= sockets.size
          raise Error, "only #{File.size(held)} threads stall" if now > deadline

          sleep 0.01
        end
        sockets
      end

      # Sends the requests, and returns the clients that could, in this order. A server that does not accept connections meanwhile may
      # have no room for all of them.
      def queue(port, deadline)
        address = Socket.sockaddr_in(port, "127.0.0.1")
        pending = Array.new(@queued) { Socket.new(:INET, :STREAM).tap { |socket| socket.connect_nonblock(address, exception: false) } }
        queued = []
        until pending.empty? || now > deadline
          _, ready = IO.select(nil, pending, nil, [deadline - now, 0].max)
          ready&.each { |socket| queued << socket if write(socket) }
          pending -= ready || []
        end
        pending.each(&:close)
        queued
      end

      def write(socket)
        socket.write_nonblock(REQUEST) == REQUEST.bytesize
      rescue SystemCallError
        socket.close
        false
      end

      def leave(socket, how)
        socket.setsockopt(Socket::Option.linger(true, 0)) if how == RESET
        socket.close
      end

      # The milliseconds to the first good response, and the classes of the statuses that came.
      def responses(staying)
        began = now
        statuses = []
        first = nil
        until staying.empty? || now - began > PATIENCE
          ready, = IO.select(staying, nil, nil, 0.1)
          staying -= ready || []
          statuses.concat(found = [*ready].map { |socket| status(socket) })
          first ||= (now - began) * 1000 if found.include?(2)
        end
        [first, statuses]
      end

      # The first digit of a response's status; nil without a response.
      def status(socket)
        socket.readpartial(64)[%r{\AHTTP/1\.[01] (\d)}, 1]&.to_i
      rescue EOFError, SystemCallError
        nil
      end

      def measurement(left, staying, first, statuses)
        stall = { "queued" => left + staying.size, "left" => left, "stayed" => staying.size, "first_ms" => first, "served" => statuses.count(2),
                  "refused" => statuses.count(5) }
        Measurement.new(requests: statuses.count(2), errors: {}, stall: stall)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
