# frozen_string_literal: true

module Fairlead
  module PubSub
    class NATS
      # The messages that have arrived on a connection, in order, until they are taken. The gem puts them here as into a queue of
      # its own; but its queues cannot wait with a deadline, and its callbacks can run out of order.
      class Arrivals
        # Above this, the gem drops messages, and says so.
        MOST_BYTES = 64 * 1024 * 1024

        def initialize
          @lock = Mutex.new
          @more = ConditionVariable.new
          @messages = []
          @bytes = 0
        end

        # --- for the gem

        def <<(message)
          @lock.synchronize do
            @messages << message
            @bytes += message.data.bytesize
            @more.signal
          end
        end

        # The gem compares it with a limit on the number of messages.
        def size = @bytes > MOST_BYTES ? Float::INFINITY : @messages.size

        def empty? = @messages.empty?

        # --- for the connection

        # Returns the next message, or nil if none comes within +seconds+. Raises when the connection has failed.
        def pop(seconds)
          deadline = Clock.now + seconds
          @lock.synchronize do
            while @messages.empty?
              raise @error if @error

              rest = deadline - Clock.now
              return unless rest.positive?

              @more.wait(@lock, rest)
            end
            @messages.shift.tap { |message| @bytes -= message.data.bytesize }
          end
        end

        # No more messages will come.
        def fail(error)
          @lock.synchronize do
            @error ||= error
            @more.broadcast
          end
        end

        def failed? = !@error.nil?
      end
    end
  end
end
