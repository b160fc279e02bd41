# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # Remembers the connections to Redis that do not work. Logs once when Redis is lost and once when it is back.
      class Outage
        def initialize(name)
          @name = name
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
          first = @lock.synchronize { @parts.empty?.tap { @parts[part] ||= @returns } }
          log.broker_lost(@name, error) if first
        end

        def end(part)
          last = @lock.synchronize do
            next unless @parts.delete(part)

            @returns += 1
            @returned.broadcast
            @parts.empty?
          end
          log.broker_back(@name) if last
        end

        # Waits before the next attempt of +part+: +seconds+, or until another connection works again. A connection that has
        # come back since the last attempt counts, too.
        def pause(part, seconds)
          @lock.synchronize do
            @returned.wait(@lock, seconds) if @parts[part] == @returns
            @parts[part] &&= @returns
          end
        end

        # Logs that Redis does not permit something.
        def refused(what, error) = log.broker_refused(@name, what, error)

        private

        def log = Background.current.log
      end
    end
  end
end
