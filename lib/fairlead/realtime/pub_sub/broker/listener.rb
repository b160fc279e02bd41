# frozen_string_literal: true

module Fairlead
  module PubSub
    class Broker
      # The connection that receives messages, and its two threads. The reader connects, and receives. The writer sends the
      # batches of a Wanted, many channels at once, and a ping in every PING_INTERVAL. If nothing arrives on a connection
      # although a batch was sent long ago, the connection is dead, and the reader opens another one.
      class Listener
        # +open+ connects; see Broker. The block gets each message.
        def initialize(broker, wanted, outage, counters, open:, &deliver)
          @broker = broker
          @silence = PING_INTERVAL + broker.patience
          @wanted = wanted
          @outage = outage
          @counters = counters
          @open = open
          @deliver = deliver
          @lock = Mutex.new
        end

        # True if messages of all confirmed subscriptions arrive, as far as known.
        def listens? = !@outage.of?(:listening)

        # Replaces killed threads, too.
        def start
          return if @reader&.alive? && @writer&.alive?

          @lock.synchronize do
            @reader = thread("fairlead broker listener") { receive_until_closed } unless @reader&.alive?
            @writer = thread("fairlead broker writer") { write_until_closed } unless @writer&.alive?
          end
        end

        def close
          @lock.synchronize do
            [@writer, @reader].each { |thread| thread&.kill&.join(@silence) } # the writer may hold the connection that the reader closes
            @reader = @writer = nil
          end
        end

        # --- for the connection

        # The broker has replied to the oldest batch, or confirmed its next entry.
        def confirmed
          @asked_at = nil
          @wanted.confirm
          @outage.end(:listening) if @wanted.recovered?
        end

        # The broker has refused the oldest batch.
        def refused(error)
          @asked_at = nil
          @wanted.refuse { |name| @outage.refused(name, error) }
          @outage.end(:listening) if @wanted.recovered?
        end

        # The broker has refused that entry, and has not confirmed it before. It is not tried again.
        def rejected(entry, error)
          @wanted.reject(entry) { |name| @outage.refused(name, error) }
        end

        def deliver(channel, message)
          @asked_at = nil
          @counters.add(:received)
          @deliver.call(channel, message)
        end

        # Messages were sent to this process, but have not arrived.
        def missed(number, reason)
          @counters.add(:missed, number)
          @outage.losing(reason)
        end

        private

        def thread(name, &block) = Thread.new(&block).tap { |thread| thread.name = name }

        def receive_until_closed
          failures = 0
          loop do
            started = Clock.now
            listen
          rescue StandardError => e
            @outage.begin(:listening, e)
            @wanted.disconnect
            failures = 0 if Clock.now - started > PAUSES.last + @silence
            @outage.pause(:listening, PAUSES[failures] || PAUSES.last)
            failures += 1
          end
        end

        # Raises when the connection has ended.
        def listen
          connection = @open.call(self)
          @asked_at = nil
          @wanted.reset(connection)
          loop { receive(connection) }
        ensure
          connection&.close
        end

        # While another thread keeps Ruby's lock, no batch is sent. So only batches that were sent long ago count as
        # unanswered.
        def receive(connection)
          seconds = @silence
          until connection.receive(seconds)
            seconds = @asked_at ? @asked_at + @broker.patience - Clock.now : @broker.patience
            raise Silence, "it has not answered for #{@broker.patience} s" unless seconds.positive?
          end
        end

        def write_until_closed
          loop { write(*@wanted.next_batch(PING_INTERVAL)) }
        end

        # A batch that is not sent ends the connection, and the reader notices that.
        def write(connection, batch)
          @asked_at ||= Clock.now
          connection.tell(batch)
          is_whole = true
        rescue StandardError
          nil
        ensure
          connection.break_off unless is_whole
        end
      end
    end
  end
end
