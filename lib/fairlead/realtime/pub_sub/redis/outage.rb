# frozen_string_literal: true

module Fairlead
  module PubSub
    class Redis
      # Whether Redis can be reached. Logs when it is lost and when it is back, whichever connection noticed.
      class Outage
        def initialize(name)
          @name = name
          @lock = Mutex.new
          @parts = {}
        end

        # Whether all connections work.
        def none? = @parts.empty?

        # +part+: the connection, as a Symbol.
        def begin(part, error)
          first = @lock.synchronize { @parts.empty?.tap { @parts[part] = true } }
          log.broker_lost(@name, error) if first
        end

        def end(part)
          last = @lock.synchronize { @parts.delete(part) && @parts.empty? }
          log.broker_back(@name) if last
        end

        private

        def log = Background.current.log
      end
    end
  end
end
