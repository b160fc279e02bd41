# frozen_string_literal: true

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

      # Seconds between two attempts to lead, and for which a message is kept. The supervisor may take seconds to notice an end.
      INTERVAL = 0.2
      WINDOW = 10

      # Seconds before a new process tries to lead. Others have kept more messages, and come first.
      DELAY = 0.6

      # Most kept messages, and their bytes.
      MOST = 10_000
      MOST_BYTES = 16 * 1024 * 1024

      Message = Struct.new(:channel, :payload, :at)
      private_constant :Message

      # +broker+: a PubSub::Broker for this feed alone.
      def initialize(broker, native: nil)
        @broker = broker
        @native = native
        @lock = Mutex.new
        forget
        @leads = false
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
      end

      # The next leader publishes from its first message on that is missing.
      def stop
        @thread&.kill&.join
        @thread = nil
        @lock.synchronize do
          native.stop_leading if @leads
          @leads = false
        end
        @broker.close
      end

      private

      # Loads the extension, which a process without a server may not need.
      def native = @native || Native

      def follow
        sleep DELAY
        loop do
          @lock.synchronize { take_over if !@leads && native.lead }
          sleep INTERVAL
        end
      end

      def take(text)
        channel, payload = unpack(text)
        return unless channel

        @lock.synchronize do
          @leads ? append(channel, payload) : keep(Message.new(channel, payload, Clock.now))
        end
      end

      def append(channel, payload) = native.publish(channel, payload, PubSub::HISTORY.number)

      def keep(message)
        @bytes += message.payload.bytesize
        @recent << message
        @bytes -= @recent.shift.payload.bytesize while too_much?
      end

      def too_much?
        @recent.size > 1 && (@recent.size > MOST || @bytes > MOST_BYTES || @recent.last.at - @recent.first.at > WINDOW)
      end

      # The history has times by the system's clock. It may be empty: then this is the first leader.
      def take_over
        @leads = true
        recent = @recent.select { |message| Clock.now - message.at <= WINDOW }
        forget
        published = Hash.new { |all, channel| all[channel] = published(channel).tally }
        recent.each do |message|
          next published[message.channel][message.payload] -= 1 if published[message.channel].fetch(message.payload, 0).positive?

          append(message.channel, message.payload)
        end
      end

      def forget
        @recent = []
        @bytes = 0
      end

      # The payloads of a channel in the history, since the oldest kept message or a little longer.
      def published(channel)
        (native.history(channel, nil, Time.now.to_f - WINDOW - 1, MOST, WINDOW + 1) || []).map { |entry| entry.last.b }
      end

      def pack(channel, payload) = [channel.bytesize, channel, payload].pack("Na*a*")

      def unpack(text)
        size = text.unpack1("N")
        [text.byteslice(4, size), text.byteslice(4 + size..)] if size && 4 + size <= text.bytesize
      end
    end
  end
end
