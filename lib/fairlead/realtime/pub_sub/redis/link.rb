# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # The two connections of a process to Redis.
      class Link
        # How long a new subscription waits for Redis to confirm it, in seconds. Messages published after that are received.
        CONFIRMATION_TIMEOUT = 1

        # +options+: those of Redis.new. The block gets the channel and the text of each message from Redis.
        def initialize(options, name, &deliver)
          @outage = Outage.new(name)
          @wanted = Wanted.new
          @commands = Commands.new(options, @outage) { wake }
          @subscriber = Subscriber.new(options, @wanted, @outage, &deliver)
        end

        def subscribe(to, match)
          entry = @wanted.add(to, match)
          @subscriber.start
          wake
          @wanted.wait_for(entry, CONFIRMATION_TIMEOUT) { @outage.none? }
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

        # The subscriber's thread waits for Redis, so a message through Redis wakes it.
        def wake
          @commands.publish(@subscriber.own_channel, "") if @subscriber.running?
        end
      end
    end
  end
end
