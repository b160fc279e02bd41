# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # The connection that receives messages, and its two threads. The reader connects, and reads. The writer sends the
      # commands of a Wanted, many channels at once, and a PING in every PING_INTERVAL. If nothing arrives on a connection
      # although a command was sent long ago, the connection is dead, and the reader opens another one.
      class Subscriber
        # +patience+: seconds that a reply may take.
        def initialize(options, patience, wanted, outage, &deliver)
          @options = options
          @patience = patience
          @silence = PING_INTERVAL + patience
          @wanted = wanted
          @outage = outage
          @deliver = deliver
          @lock = Mutex.new
        end

        # True if messages of all confirmed subscriptions arrive, as far as known.
        def listens? = !@outage.of?(:subscriber)

        # Replaces killed threads, too.
        def start
          return if @reader&.alive? && @writer&.alive?

          @lock.synchronize do
            @reader = thread("fairlead redis listener") { read_until_closed } unless @reader&.alive?
            @writer = thread("fairlead redis writer") { write_until_closed } unless @writer&.alive?
          end
        end

        def close
          @lock.synchronize do
            [@reader, @writer].each { |thread| thread&.kill&.join }
            @reader = @writer = nil
          end
        end

        private

        def thread(name, &block) = Thread.new(&block).tap { |thread| thread.name = name }

        def read_until_closed
          failures = 0
          loop do
            started = Clock.now
            listen
          rescue StandardError => e
            @outage.begin(:subscriber, e)
            @wanted.disconnect
            failures = 0 if Clock.now - started > PAUSES.last + @silence
            @outage.pause(:subscriber, PAUSES[failures] || PAUSES.last)
            failures += 1
          end
        end

        # Raises when the connection has ended.
        def listen
          wire = Wire.open(@options)
          @last = @asked_at = nil
          @wanted.reset(wire)
          loop { receive(read(wire)) }
        ensure
          wire&.close
        end

        # While another thread keeps Ruby's lock, no command is sent. So only commands that were sent long ago count as
        # unanswered.
        def read(wire)
          seconds = @silence
          begin
            wire.read(seconds)
          rescue Wire::Silence
            rest = @asked_at ? @asked_at + @patience - Clock.now : @patience
            raise Wire::Silence, "Redis has not answered for #{@patience} s" unless rest.positive?

            seconds = rest
            retry
          end
        end

        def write_until_closed
          loop { write(*@wanted.next_command(PING_INTERVAL)) }
        end

        # An incomplete write ends the connection, and the reader notices that.
        def write(wire, command)
          @asked_at ||= Clock.now
          wire.write(command)
          is_whole = true
        rescue StandardError
          nil
        ensure
          wire.close unless is_whole
        end

        # Replies come in the order of the commands; messages in between.
        def receive(reply)
          @asked_at = nil
          kind, name, *rest = reply
          case kind
          when "message" then take(:channel, name.b, rest.last.b)
          when "pmessage" then take(name.b, rest.first.b, rest.last.b)
          when "subscribe", "psubscribe", "unsubscribe", "punsubscribe", "pong", "PONG" then confirm
          else refuse(reply)
          end
        end

        def confirm
          @last = nil
          @wanted.confirm
          @outage.end(:subscriber) if @wanted.recovered?
        end

        def refuse(reply)
          raise(reply.is_a?(StandardError) ? reply : IOError.new("Redis sent what no command asked for")) unless Wire.refusal?(reply)

          @wanted.refuse { |name| @outage.refused(name, reply) }
          @outage.end(:subscriber) if @wanted.recovered?
        end

        # Redis sends a message once for each matching subscription, one after the other. So a message is a repetition if it
        # equals the last one and has come for another subscription. If it comes for the same subscription again, it has been
        # published again.
        def take(source, channel, message)
          publication = [channel, message]
          if publication == @last && !@sources.include?(source)
            @sources << source
          else
            @last = publication
            @sources = [source]
            @deliver.call(channel, message)
          end
        end
      end
    end
  end
end
