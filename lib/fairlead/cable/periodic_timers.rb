# frozen_string_literal: true

module Fairlead
  module Cable
    module Sockets
      # For ActionCable::Channel::Base: the timers of +periodically+ are Fairlead's, and their blocks run in the client's turn.
      module PeriodicTimers
        # A timer with the method that Rails calls to end it.
        class Timer
          # +seconds+: the interval. The block of +periodically+ runs with +channel+ as self.
          def initialize(seconds, socket, channel, block)
            @socket = socket
            @channel = channel
            @block = block
            @timer = Fairlead.run_every(seconds) { wait_for_turn unless @waits }
          end

          def shutdown
            @ended = true
            @timer.cancel
          end

          private

          # While the client is busy, runs are skipped. The application may kill this thread.
          def wait_for_turn
            @waits = true
            is_deferred = @socket.later(method(:run))
          ensure
            @waits = false unless is_deferred
          end

          def run
            @waits = false
            @socket.work.invoke(@channel, :instance_exec, connection: @socket.target, &@block) unless @ended
          end
        end

        private

        def start_periodic_timer(callback, every:)
          socket = Socket.of(connection) or return super

          Timer.new(every.to_f, socket, self, callback)
        end
      end
    end
  end
end
