# frozen_string_literal: true

module Fairlead
  module PubSub
    class Broker
      # Publications that the broker has not confirmed. Threads publish together: one of them sends all that wait, and waits for the
      # confirmations; then the next one does. So no thread waits for the round trips of others, and no thread of its own is needed.
      #
      # The queue has a limit in bytes. A thread waits for room in it, and gives up at its deadline. When a batch fails, an outage
      # begins: publications fail at once until a thread has found that the broker is back.
      class Outbox
        # Most bytes in the queue; a longer message has it alone.
        MOST_BYTES = 16 * 1024 * 1024

        # Most publications in a batch.
        BATCH = 500

        # +result+: nil, true if confirmed, or the exception of a refusal.
        Publication = Struct.new(:channel, :message, :deadline, :turn, :result, :over) do
          def bytesize = channel.bytesize + message.bytesize
          def rest = deadline - Clock.now
        end

        # The block connects.
        def initialize(broker, outage, counters, &open)
          @broker = broker
          @outage = outage
          @counters = counters
          @open = open
          @lock = Mutex.new
          @room = ConditionVariable.new
          @waiting = []
          @bytes = @failures = 0
        end

        # Returns false if the broker has not confirmed the message. A message that it may have received is never sent again.
        #
        # @raise [Exception] the broker's refusal
        def publish(channel, message)
          return lose if away?

          publication = Publication.new(channel, message, Clock.now + @broker.patience)
          return lose(full: !away?) unless enter(publication)

          pass(publication)
          settle(publication.result)
        end

        # Counts a publication that is not sent.
        def lose(full: false)
          @counters.add(:lost)
          @outage.losing("the queue of publications is full") if full
          false
        end

        def close
          @lock.synchronize do
            @is_closed = true
            @prober&.kill
            @prober = nil
            drop_line
          end
        end

        private

        # Tries again if the prober was killed.
        def away? = @prober&.alive?

        def settle(result)
          return lose unless result
          return @counters.add(:published) && true if result == true

          @counters.add(:refused)
          raise result
        end

        def enter(publication)
          @lock.synchronize do
            wait_for_room(publication) unless room_for?(publication)
            next false if away? || !room_for?(publication)

            @bytes += publication.bytesize
            @waiting << publication
          end
        end

        def room_for?(publication) = @bytes.zero? || @bytes + publication.bytesize <= MOST_BYTES

        def wait_for_room(publication)
          @counters.add(:waits)
          @room.wait(@lock, publication.rest) until away? || room_for?(publication) || !publication.rest.positive?
        end

        # A thread that is stopped meanwhile, for example by Timeout, first sends the batch that it has begun.
        def pass(publication)
          Thread.handle_interrupt(Object => :never) do
            send_batch while turn?(publication)
          ensure
            leave(publication)
          end
        end

        # Waits for the result, and returns false; or returns true if this thread has to send.
        def turn?(publication)
          @lock.synchronize do
            until publication.over
              return @is_sending = true unless @is_sending
              break unless publication.rest.positive? || !@waiting.include?(publication)

              publication.turn ||= ConditionVariable.new
              Thread.handle_interrupt(Object => :immediate) { publication.turn.wait(@lock, [publication.rest, 0.01].max) }
            end
            false
          end
        end

        def leave(publication)
          @lock.synchronize do
            @waiting.delete(publication) unless publication.over
            @bytes -= publication.bytesize
            @room.broadcast
            next_turn
          end
        end

        def next_turn
          @waiting.first&.turn&.signal unless @is_sending
        end

        def send_batch
          batch = @lock.synchronize { @waiting.shift(BATCH) }
          results = line.publish(batch, @broker.patience)
          batch.zip(results) { |publication, refusal| publication.result = refusal || true }
          @failures = 0
          is_done = true
        rescue StandardError => e
          fail_all(e)
          is_done = true
        ensure
          finish(batch || [], is_done)
        end

        def finish(batch, is_done)
          @lock.synchronize do
            drop_line unless is_done
            batch.each { |publication| over(publication) }
            @is_sending = false
            next_turn
          end
        end

        def over(publication)
          publication.over = true
          publication.turn&.signal
        end

        # Only the thread that sends calls this.
        def line
          @lock.synchronize { drop_line } unless @line.nil? || @line.usable?
          @line ||= unmasked { @open.call }.value
        end

        # Threads that a client starts would inherit :never, and nobody could stop them.
        def unmasked(&block)
          Thread.new { Thread.handle_interrupt(Object => :immediate, &block) }.tap { |thread| thread.report_on_exception = false }
        end

        def drop_line
          @line&.close
        rescue StandardError
          nil # it has ended already
        ensure
          @line = nil
        end

        # Publications that wait are lost, too: they could not be sent before their deadline.
        def fail_all(error)
          @lock.synchronize do
            drop_line
            @waiting.shift(@waiting.size).each { |publication| over(publication) }
            @room.broadcast
            begin_outage(error) unless away? || @is_closed
          end
        end

        def begin_outage(error)
          @outage.begin(:publishing, error)
          @prober = unmasked { probe_until_back }
          @prober.name = "fairlead broker"
        end

        def probe_until_back
          loop do
            @outage.pause(:publishing, PAUSES[@failures] || PAUSES.last)
            @failures += 1
            line = connected or next
            @lock.synchronize do
              @line = line
              @prober = nil
            end
            break @outage.end(:publishing)
          end
        end

        def connected
          @open.call
        rescue StandardError
          nil
        end
      end
    end
  end
end
