# frozen_string_literal: true

module Fairlead
  module PubSub
    class Broker
      # Remembers the connections to the broker that do not work. Logs once when the broker is lost and once when it is back.
      class Outage
        # Fewest seconds between two lines about losses without an outage.
        INTERVAL = 10

        def initialize(name, counters)
          @name = name
          @counters = counters
          @lock = Mutex.new
          @returned = ConditionVariable.new
          @returns = 0
          @parts = {}
        end

        # True if all connections work.
        def none? = @parts.empty?

        # True if that connection does not work.
        def of?(part) = @parts.key?(part)

        # +part+: the connection, as a Symbol.
        def begin(part, error)
          first = @lock.synchronize do
            note_start if @parts.empty?
            @parts.empty?.tap { @parts[part] ||= @returns }
          end
          log.broker_lost(@name, error) if first
        end

        def end(part)
          last = @lock.synchronize do
            next unless @parts.delete(part)

            @counters.add(:reconnects)
            @returns += 1
            @returned.broadcast
            @parts.empty?
          end
          log.broker_back(@name, Clock.now - @began, @counters[:lost] - @lost_before) if last
        end

        # Waits before the next attempt of +part+: +seconds+, or until another connection works again. A connection that has
        # come back since the last attempt counts, too.
        def pause(part, seconds)
          @lock.synchronize do
            @returned.wait(@lock, seconds) if @parts[part] == @returns
            @parts[part] &&= @returns
          end
        end

        # Logs that the broker does not permit a subscription.
        def refused(what, error) = log.broker_refused(@name, what, error)

        # Logs that messages are lost although the broker can be reached.
        def losing(reason)
          is_due = @lock.synchronize do
            now = Clock.now
            next if @told_at && now - @told_at < INTERVAL

            @told_at = now
          end
          log.broker_loses(@name, reason, @counters.to_h) if is_due
        end

        private

        def note_start
          @began = Clock.now
          @lost_before = @counters[:lost]
        end

        def log = Background.current.log
      end
    end
  end
end
