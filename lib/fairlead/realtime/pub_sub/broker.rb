# frozen_string_literal: true

module Fairlead
  module PubSub
    # Carries messages between machines through a broker: a server that all of them can reach. Messages go to the broker only, and
    # even the publishing process receives them from there, so no subscriber gets one twice.
    #
    # Each process has two connections, opened when they are first used: one publishes, one listens. If the broker cannot be
    # reached, no caller waits for it: {#publish} returns false, and messages are lost. Subscriptions are made again when the broker
    # is back. While subscriptions of this process are missing, {#publish} returns false, too. A message is sent once: if the
    # connection breaks before the broker has confirmed it, {#publish} returns false although it may arrive.
    #
    # A subclass has the protocol of one broker, in three private methods:
    #
    # - +entry(to, match)+ returns the subscription in the broker's form, [kind, name], or raises {Refused}.
    # - +open_sender+ connects and returns an object with +publish(batch, seconds)+, +usable?+ and +close+. The first sends the
    #   publications of an Outbox and waits for the broker. It returns nil for each confirmed one and an exception for each refused
    #   one, and raises if the connection fails.
    # - +open_listening(listener)+ connects and returns an object with +tell(batch)+, +receive(seconds)+, +break_off+ and +close+. The
    #   first sends a Wanted::Batch. The second waits for bytes, and returns false if none come in time. Both tell the Listener of
    #   confirmations, refusals and messages, and raise if the connection fails. One thread calls +tell+; if that raises, it calls
    #   +break_off+, which makes +receive+ raise. Another thread calls +receive+ and +close+.
    class Broker < Engine
      autoload :Address, "fairlead/realtime/pub_sub/broker/address"
      autoload :Counters, "fairlead/realtime/pub_sub/broker/counters"
      autoload :Link, "fairlead/realtime/pub_sub/broker/link"
      autoload :Listener, "fairlead/realtime/pub_sub/broker/listener"
      autoload :Outage, "fairlead/realtime/pub_sub/broker/outage"
      autoload :Outbox, "fairlead/realtime/pub_sub/broker/outbox"
      autoload :Repetitions, "fairlead/realtime/pub_sub/broker/repetitions"
      autoload :Wanted, "fairlead/realtime/pub_sub/broker/wanted"

      # The broker does not take a message or a subscription, although the connection works.
      class Refused < Error; end

      # The broker has not answered in time.
      class Silence < IOError; end

      # Seconds that a connection or a reply may take.
      TIMEOUT = 1

      # Seconds that a new subscription waits for the broker to confirm it. Messages published after that are received.
      CONFIRMATION_TIMEOUT = 1

      # Seconds between two signs of life that a silent connection has to give.
      PING_INTERVAL = 2

      # Seconds between attempts to reach the broker; the last one repeats.
      PAUSES = [0.1, 0.2, 0.5, 1, 2].freeze

      # @return [String] the broker and its address, for people
      attr_reader :name

      # @return [Float] seconds that a reply may take
      attr_reader :patience

      # @param name [String] the broker and its address, without a password
      # @param patience [Numeric] seconds that a reply may take
      def initialize(name, patience: TIMEOUT)
        super()
        @name = name
        @patience = Float(patience)
        @lock = Mutex.new
      end

      # @param to [String] the channel or pattern
      # @param match [nil, :redis, :subject]
      # @return [Boolean] false if the broker cannot carry this subscription
      # @see Engine#subscribe
      def subscribe(to, match)
        link.subscribe(to, match)
      end

      # @param to [String] the channel or pattern
      # @param match [nil, :redis, :subject]
      # @return [void]
      # @see Engine#wait_for
      def wait_for(to, match) = link.wait_for(to, match)

      # @param to [String] the channel or pattern
      # @param match [nil, :redis, :subject]
      # @return [true]
      # @see Engine#unsubscribe
      def unsubscribe(to, match)
        link.unsubscribe(to, match)
        true
      end

      # @param to [String] the channel
      # @param message [String]
      # @return [Boolean] false while the broker cannot be reached
      def publish(to, message) = link.publish(to, message)

      # True if this process can publish and receive, as far as known.
      #
      # @return [Boolean]
      def reachable? = link.reachable?

      # Counts a message that was not given to the broker.
      #
      # @api private
      def lose = link.counters.add(:lost)

      # Replaces the delivery to the subscribers of this process.
      #
      # @api private
      def on_message(&block)
        @deliver = block
      end

      # The counts of this process, since it began to use the broker.
      #
      # @return [Hash{Symbol => Integer}] +published+ (confirmed by the broker), +lost+ (not confirmed), +refused+, +waits+ (for room
      #   in the queue), +received+, +missed+ (sent to this process, but not received, as far as known), +reconnects+
      def statistics = link.counters.to_h

      # Closes both connections of this process. They are opened again when they are used; to prevent that, detach the engine
      # first.
      #
      # @return [void]
      def close
        @lock.synchronize do
          @link&.close if @pid == Process.pid
          @link = nil
        end
      end

      # @return [String]
      def inspect = "#<#{self.class} #{@name}>"

      private

      # The connections of this process. A forked process opens its own, and does not use its parent's.
      def link
        @lock.synchronize do
          @link = @counters = nil unless @pid == Process.pid
          @pid = Process.pid
          @counters ||= Counters.new
          @link ||= Link.new(self, @counters, sender: -> { open_sender }, listening: ->(listener) { open_listening(listener) },
                                              entry: ->(to, match) { entry(to, match) }) { |channel, message| deliver(channel, message) }
        end
      end

      def deliver(channel, message) = @deliver ? @deliver.call(channel, message) : PubSub.registry.publish(channel, message, PROCESS)
    end
  end
end
