# frozen_string_literal: true

module Fairlead
  module PubSub
    class Broker
      # The two connections of a process to its broker.
      class Link
        attr_reader :counters

        # +sender+, +listening+ and +entry+: the private methods of a Broker. The block gets the channel and the text of each message.
        def initialize(broker, counters, sender:, listening:, entry:, &deliver)
          @counters = counters
          @entry = entry
          @outage = Outage.new(broker.name, counters)
          @wanted = Wanted.new
          @outbox = Outbox.new(broker, @outage, counters, &sender)
          @listener = Listener.new(broker, @wanted, @outage, counters, open: listening, &deliver)
        end

        def subscribe(to, match)
          @wanted.add([to, match], @entry.call(to, match))
          @listener.start
          true
        rescue Refused => e
          @outage.refused(to, e)
          false
        end

        def unsubscribe(to, match) = @wanted.remove([to, match])

        def wait_for(to, match)
          @wanted.wait_for([to, match], CONFIRMATION_TIMEOUT) { @outage.none? }
        end

        # While this process does not listen, its own subscribers would miss the message.
        def publish(to, message)
          return @outbox.publish(to, message) && @listener.listens? if @listener.listens?

          @outbox.lose
        end

        def reachable? = @outage.none?

        def close
          @listener.close
          @outbox.close
        end
      end
    end
  end
end
