# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # One process's end of the connections to Redis.
      class Link
        # How long a subscriber waits for Redis to confirm, in seconds, so that the next message published comes back.
        CONFIRMATION_TIMEOUT = 1

        # +options+: those of Redis.new. The block takes the channel and the message of what comes in.
        def initialize(options, name, &deliver)
          @outage = Outage.new(name)
          @wanted = Wanted.new
          @commands = Commands.new(options, @outage) { wake }
          @subscriber = Subscriber.new(options, @wanted, @outage, &deliver)
        end

        def subscribe(to, match)
          target = @wanted.add(to, match)
          @subscriber.start
          wake
          @wanted.wait_for(target, CONFIRMATION_TIMEOUT) { @outage.none? }
        end

        def unsubscribe(to, match)
          @wanted.remove(to, match)
          wake
        end

        def publish(to, message) = @commands.publish(to, message)

        def close
          @subscriber.close
          @commands.close
        end

        private

        # The subscriber waits for Redis, so it is through Redis that it is told of changes.
        def wake
          @commands.publish(@subscriber.own_channel, "") if @subscriber.running?
        end
      end
    end
  end
end
