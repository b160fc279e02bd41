# frozen_string_literal: true

module Bench
  module Drive
    # Subscribed WebSockets without messages: the memory that one costs the server. Memory is read before the first is
    # opened and with all of them open.
    class IdleSockets
      HELD = 3
      SETTLING = 1

      def units
        { many: "sockets", one: "socket" }
      end

      def speaks?(dialect, _shape)
        !dialect.chat.nil? && ProcessGroup.readable?
      end

      # A few sockets first, so that the one-time cost of the first socket is not counted.
      def warm_up(target, _seconds)
        shape = target.shape.dup.tap { |few| few.connections = 10 }
        load(Target.new(target.load_tool, target.running, shape, target.dialect), 0.2)
      end

      def measure(target, _seconds)
        group = target.running.group
        before = group.memory_kib
        after = nil
        found = load(target, HELD) do
          sleep SETTLING
          after = group.memory_kib
        end
        raise Error, "the load tool did not open all its sockets" unless after

        left = found["sockets"]["left"]
        Measurement.new(
          requests: left, seconds: found["seconds"], errors: found["errors"].reject { |_, count| count.zero? },
          bytes: found["bytes"]["read"], memory_mib: after / 1024.0, opening: found["opening"],
          socket_kib: left.zero? ? nil : (after - before).fdiv(left)
        )
      end

      def problem(found)
        "no socket was left: #{found.errors}" if found.requests.zero?
      end

      def summary(found)
        format("%.1f KiB for each of %d sockets", found.socket_kib, found.requests)
      end

      private

      def load(target, seconds, &block)
        dialect = target.dialect
        target.real_time(target.websocket(dialect.chat), "--idle", "-d", seconds.to_s, *dialect.arguments_for(:idle), &block)
      end
    end
  end
end
