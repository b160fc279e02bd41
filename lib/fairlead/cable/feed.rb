# frozen_string_literal: true

require "securerandom"

module Fairlead
  module Cable
    # Carries the broadcasts of all machines through a broker, into the history of each server. All broadcasts have one channel there,
    # because the history also needs messages of channels without subscribers.
    #
    # Each process that serves listens, but only one of a server, the leader, publishes what arrives. The others keep the messages of
    # the last seconds: if the leader ends, the next one publishes the messages that are missing in the history.
    class Feed
      # The channel of the broker.
      CHANNEL = "fairlead/cable"

      # The form of a message, and the length of its numbers.
      FORM = "Q>Na*a*"
      HEAD = 12

      # Seconds between two attempts to lead, and for which a message is kept. The supervisor may take seconds to notice an end.
      INTERVAL = 0.2
      WINDOW = 10

      # Seconds before a new process tries to lead. Others have kept more messages, and come first.
      DELAY = 0.6

      # Seconds by which a message may come later to one process than to another.
      LATE = 2

      # Most kept messages, and their bytes.
      MOST = 10_000
      MOST_BYTES = 16 * 1024 * 1024

      Message = Struct.new(:number, :channel, :payload, :at)
      private_constant :Message

      # +broker+: a PubSub::Broker for this feed alone.
      def initialize(broker, native: nil)
        @broker = broker
        @native = native
        @lock = Mutex.new
        forget
        @leads = false
        @listens_since = Clock.now
        broker.on_message { |_, text| take(text) }
      end

      # Without the broker, the server of this machine alone gets the broadcast.
      #
      # @return [Boolean] false if other machines, or all, do not get it
      def broadcast(channel, payload)
        message = pack(channel.b, payload.b)
        return @broker.publish(CHANNEL, message) if @broker.reachable?

        @broker.lose
        Cable.broadcast_here(channel, payload)
        false
      end

      def statistics = { "#{@broker.name} (Action Cable)" => @broker.statistics }

      # True if this process publishes what arrives.
      def leads? = @lock.synchronize { @leads }

      # --- for Background

      def start
        @broker.subscribe(CHANNEL, nil)
        @thread = Thread.new { follow }.tap { |thread| thread.name = "fairlead cable feed" } unless @thread&.alive?
        @broker.wait_for(CHANNEL, nil)
        @listens_since = Clock.now
      end

      # The next leader publishes from its first message on that is missing.
      def stop
        @thread&.kill&.join
        @thread = nil
        @lock.synchronize { give_up }
        @broker.close
      end

      private

      # Loads the extension, which a process without a server may not need.
      def native = @native || Native

      def follow
        sleep DELAY
        loop do
          @lock.synchronize { @broker.reachable? ? take_over_if_possible : give_up }
          sleep INTERVAL
        end
      end

      def take_over_if_possible = (take_over if !@leads && native.lead)

      # Messages of the broker do not arrive here; they may arrive in another process.
      def give_up
        native.stop_leading if @leads
        @leads = false
      end

      def take(text)
        message = unpack(text) or return

        @lock.synchronize do
          @leads &&= native.lead # this process may be about to end
          next keep(message) unless @leads

          append(message) unless skip?(message) || appended?(message)
        end
      end

      def append(message)
        native.publish(message.channel, message.payload, PubSub::HISTORY.number)
        native.note_progress(message.number)
      end

      def keep(message)
        @bytes += message.payload.bytesize
        @recent << message
        @bytes -= @recent.shift.payload.bytesize while too_much?
      end

      def too_much?
        @recent.size > 1 && (@recent.size > MOST || @bytes > MOST_BYTES || @recent.last.at - @recent.first.at > WINDOW)
      end

      # The last leader has noted the number of its last message: what came here after that message is missing. If the message has not
      # come here yet, all that is here is published, and so is what still comes before it.
      def take_over
        @leads = true
        recent = @recent.select { |message| Clock.now - message.at <= WINDOW }
        forget
        last, seconds, position = native.progress
        @position = (position if last.positive?)
        index = recent.rindex { |message| message.number == last }
        is_late = seconds < LATE && Clock.now - @listens_since > seconds + LATE
        return skip_until(last) if index.nil? && last.positive? && is_late

        recent.drop(index ? index + 1 : 0).each { |message| append(message) unless appended?(message) }
      end

      # The last leader may have ended between its last message and the note. So the first missing message may be in the history.
      def appended?(message)
        position = @position
        @position = nil
        past = position && native.history(message.channel, position, 0.0, MOST, WINDOW)
        past ? past.any? { |_, _, payload| payload == message.payload } : false
      end

      def skip_until(number)
        @skipped = number
        @skipped_until = Clock.now + LATE
      end

      # True for messages that the last leader has published.
      def skip?(message)
        return false unless @skipped

        is_last = message.number == @skipped
        @skipped = nil if is_last || Clock.now > @skipped_until
        is_last || !@skipped.nil?
      end

      def forget
        @recent = []
        @bytes = 0
      end

      # A message has a random number, the length of its channel, the channel and the payload.
      def pack(channel, payload) = [SecureRandom.random_number(1..(2**63)), channel.bytesize, channel, payload].pack(FORM)

      def unpack(text)
        number, size = text.unpack("Q>N")
        Message.new(number, text.byteslice(HEAD, size), text.byteslice(HEAD + size..), Clock.now) if size && HEAD + size <= text.bytesize
      end
    end
  end
end
