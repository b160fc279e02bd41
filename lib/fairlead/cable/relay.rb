# frozen_string_literal: true

module Fairlead
  module Cable
    # Carries the broadcasts of Action Cable between machines, on one channel of a broker. All processes of a server receive them,
    # and one of them, the leader, puts them into the history, from which all deliver. The others remember the newest ones; if the
    # leader dies, the next leader continues with the first one that is missing in the history.
    class Relay
      # The channel of the broker.
      CHANNEL = "fairlead:cable"

      # Seconds that a process remembers a broadcast, and between two attempts to lead.
      MEMORY = 5
      INTERVAL = 0.2

      # Most messages of a channel that are compared with the history.
      MOST = 1000

      # The length of the name, the name and the payload, in one message.
      FORM = "NA*"

      # A broadcast, and the time of its arrival.
      Received = Struct.new(:time, :channel, :payload)

      attr_reader :broker

      # +native+: replaces Fairlead::Native in tests.
      def initialize(broker, native: nil)
        @broker = broker
        @native = native
        @lock = Mutex.new
        @received = []
        @leads = false
        broker.receiver = method(:receive)
      end

      # Begins in each process that serves.
      def start
        PubSub.attach(@broker)
        Fairlead.subscribe(CHANNEL) { nil } # makes the broker listen; +receive+ gets the messages
        Fairlead.run_every(INTERVAL) { continue }
        self
      end

      # Broadcasts from any process. Returns false if the broker cannot be reached.
      def broadcast(channel, payload)
        channel = channel.b
        @broker.publish(CHANNEL, [channel.bytesize, channel].pack(FORM) << payload.b)
      end

      # Called by the broker with each of its messages. Returns false if it is for others.
      def receive(channel, message)
        return false unless channel == CHANNEL

        length = message.unpack1("N")
        received = Received.new(Clock.now, message.byteslice(4, length), message.byteslice((4 + length)..))
        @lock.synchronize do
          forget
          @received << received
          deliver if leads?
        end
        true
      end

      # Leads, if there is no leader, and delivers what the last one has not.
      def continue
        @lock.synchronize { deliver if leads? }
      end

      private

      def native = @native || Native

      def leads?
        before = @leads
        @leads = native.lead
        skip_kept if @leads && !before
        @leads
      end

      # Puts everything that was received into the history.
      def deliver
        while (received = @received.shift)
          native.publish(received.channel, received.payload, PubSub::HISTORY.number)
        end
      end

      # Forgets what the last leader has put into the history.
      def skip_kept
        forget
        @received.group_by(&:channel).each do |channel, received|
          kept = native.history(channel, nil, Time.now.to_f - (2 * MEMORY), MOST, 2 * MEMORY) || []
          count = known(received.map(&:payload), kept.map { |past| past.last.b })
          known = received.first(count)
          @received.reject! { |one| known.any? { |other| other.equal?(one) } }
        end
      end

      # The number of payloads at the beginning with which the kept ones end.
      def known(payloads, kept)
        largest = kept.size < MOST ? [payloads.size, kept.size].min : payloads.size
        largest.downto(1).find { |count| payloads.first(count).last(MOST) == kept.last([count, MOST].min) } || 0
      end

      def forget
        @received.shift while @received.any? && @received.first.time < Clock.now - MEMORY
      end
    end
  end
end
