# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # The connection for commands. When a command fails, an outage begins: commands fail at once until a thread has found
      # that Redis is back.
      class Commands
        # +patience+: seconds that a reply may take.
        def initialize(options, patience, outage)
          @options = options
          @patience = patience
          @outage = outage
          @lock = Mutex.new
          @failures = 0
        end

        # Returns false if Redis has not confirmed the message. A message that Redis may have received is never sent again.
        #
        # @raise [::Redis::CommandError] if Redis does not permit it
        def publish(channel, message)
          return false if away?

          reply = reply_to(["PUBLISH", channel, message])
          raise reply if Wire.refusal?(reply)
          return false if reply.is_a?(StandardError)

          @failures = 0
          true
        end

        def close
          @lock.synchronize do
            @prober&.kill
            @prober = nil
            @pipeline&.break_off(IOError.new("the connection was closed"))
            @pipeline = nil
          end
        end

        private

        # Tries commands again if the prober was killed.
        def away? = @prober&.alive?

        # Returns the reply, or the error instead of it.
        def reply_to(command)
          pipeline, request = sent(command)
          reply = pipeline.reply(request)
          return reply if !reply.is_a?(StandardError) || Wire.refusal?(reply)

          pipeline.break_off(reply)
          raise reply
        rescue Pipeline::Abandoned => e
          e
        rescue StandardError => e
          @lock.synchronize { begin_outage(e) }
          e
        end

        # A command that cannot have reached Redis goes over a new connection, once.
        def sent(command)
          2.times do
            pipeline = connected
            request = pipeline.write(command)
            return pipeline, request if request
          end
          raise IOError, "the connection breaks whenever it is used"
        end

        def connected
          @lock.synchronize do
            raise IOError, "Redis is away" if away?

            @pipeline = nil if @pipeline&.broken?
            @pipeline ||= open
          rescue StandardError => e
            begin_outage(e) # at once: threads that wait for the lock need not try too
            raise
          end
        end

        def open = Pipeline.new(Wire.open(@options), @patience)

        # Call this with the lock. Does nothing if another thread has begun the outage, or has connected again.
        def begin_outage(error)
          return if away? || @pipeline&.broken? == false

          @pipeline = nil
          @outage.begin(:commands, error)
          @prober = Thread.new { probe_until_back }
          @prober.name = "fairlead redis"
        end

        def probe_until_back
          loop do
            @outage.pause(:commands, PAUSES[@failures] || PAUSES.last)
            @failures += 1
            pipeline = answering or next
            @lock.synchronize do
              @pipeline = pipeline
              @prober = nil
            end
            break @outage.end(:commands)
          end
        end

        # A connection on which Redis has replied; nil if there is none.
        def answering
          pipeline = open
          reply = pipeline.reply(pipeline.write(["PING"]))
          return pipeline if reply == "PONG" || Wire.refusal?(reply)

          pipeline.break_off(IOError.new("Redis does not answer PING"))
          nil
        rescue StandardError
          nil
        end
      end
    end
  end
end
