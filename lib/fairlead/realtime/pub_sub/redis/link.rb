# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # The two connections of a process to Redis.
      class Link
        # +options+: of Redis.new. The block gets the channel and the text of each message from Redis.
        def initialize(options, name, &deliver)
          patience = Float(options[:read_timeout] || options[:timeout])
          @outage = Outage.new(name)
          @wanted = Wanted.new
          @commands = Commands.new(options, patience, @outage)
          @subscriber = Subscriber.new(options, patience, @wanted, @outage, &deliver)
        end

        def subscribe(to, match)
          @wanted.add(to, match)
          @subscriber.start
        end

        def unsubscribe(to, match) = @wanted.remove(to, match)

        def wait_for(to, match)
          @wanted.wait_for(to, match, CONFIRMATION_TIMEOUT) { @outage.none? }
        end

        # While this process does not listen, its own subscribers would miss the message.
        def publish(to, message)
          @subscriber.listens? && @commands.publish(to, message) && @subscriber.listens?
        end

        def close
          @subscriber.close
          @commands.close
        end
      end
    end
  end
end
