# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # The commands of several threads on one connection. Each thread writes its command at once. Then one thread after the
      # other reads replies until it has its own. So no thread waits for the round trip of another one.
      class Pipeline
        # A thread was stopped while it used the connection; that has ended the connection.
        class Abandoned < IOError; end

        # A command without a reply so far, or without hope of one. +due+: when the reply is late.
        Request = Struct.new(:due, :reply, :error) do
          def over? = !(reply.nil? && error.nil?)
        end

        # Seconds after its last use within which a connection is used again without a check.
        RECENT = 0.01

        # Seconds; the library takes 0 for no limit.
        SHORTEST = 0.001

        # +patience+: seconds from a command to its reply, regardless of the number of replies before it.
        def initialize(wire, patience)
          @wire = wire
          @patience = patience
          @writing = Mutex.new
          @reading = Mutex.new
          @requests = []
          @used = Clock.now
        end

        # Writes a command. Returns the request, or nil if Redis cannot have received the whole command.
        def write(command)
          @writing.synchronize do
            return if broken? || ended_while_idle?

            @requests << (request = Request.new(Clock.now + @patience))
            request if break_off_unless_done { @wire.write(command) || true }
          end
        end

        # Waits for the reply, and returns it. Raises if it does not come; Redis may then have executed the command. A thread
        # that is stopped meanwhile, for example by Timeout, first reads the reply that is due: the other threads could not use
        # the rest of it.
        def reply(request)
          @reading.synchronize do
            Thread.handle_interrupt(Object => :never) { read_one } until request.over?
          end
          raise request.error if request.error

          request.reply
        end

        # Ends the connection. Threads that wait for a reply get +error+.
        def break_off(error)
          @broken = true
          requests = @requests
          @requests = []
          requests.each { |request| request.error ||= error }
          @wire.close
        rescue StandardError
          nil # it has ended already
        end

        def broken? = @broken

        private

        def ended_while_idle?
          return false unless @requests.empty? && Clock.now - @used > RECENT && @wire.ended?

          break_off(IOError.new("Redis has closed the connection"))
          true
        end

        def read_one
          break_off_unless_done do
            reply = next_reply
            @used = Clock.now
            @requests.shift&.reply = reply
          end
        end

        def next_reply
          @wire.read([@requests.first.due - Clock.now, SHORTEST].max)
        rescue Wire::Silence
          raise Wire::Silence, "Redis has not replied for #{@patience} s"
        end

        # A thread that is killed in the middle of a command leaves the connection useless.
        def break_off_unless_done
          result = yield
          is_done = true
          result
        rescue StandardError => e
          break_off(e)
          is_done = true
          nil
        ensure
          break_off(Abandoned.new("a thread was stopped while it used the connection")) unless is_done
        end
      end
    end
  end
end
