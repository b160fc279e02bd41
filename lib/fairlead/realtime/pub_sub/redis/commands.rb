# frozen_string_literal: true

require "monitor"

module Fairlead
  module PubSub
    class Redis
      # The connection for commands. A command that fails begins an outage; until a thread of its own has found out that
      # Redis is back, commands fail at once.
      class Commands
        # The block is called when Redis is back.
        def initialize(options, outage, &back)
          @options = options
          @outage = outage
          @back = back
          @lock = Monitor.new
          @attempts = 0
        end

        # False when Redis is away.
        def publish(channel, message)
          @lock.synchronize do
            return false if @prober

            attempt { redis.publish(channel, message) }
            @attempts = 0
            true
          rescue StandardError => e # whatever it is that redis-rb lets through, the message has not been published
            begin_outage(e)
            false
          end
        end

        def close
          @lock.synchronize do
            @prober&.kill
            @prober = nil
            @redis&.close
            @redis = nil
          end
        end

        private

        def redis = @redis ||= ::Redis.new(**@options)

        # If an unused connection has broken, the next command fails without having arrived, and is repeated. A command
        # without a reply in time may have arrived, and is not repeated.
        def attempt
          yield
        rescue ::Redis::ConnectionError
          @redis = nil
          yield
        end

        def begin_outage(error)
          @redis&.close
          @redis = nil
          @outage.begin(:commands, error)
          @prober = Thread.new { probe_until_back }
          @prober.name = "fairlead redis"
        end

        def probe_until_back
          loop do
            sleep PAUSES[@attempts] || PAUSES.last
            @attempts += 1
            break if back?
          end
          @lock.synchronize { @prober = nil }
          @outage.end(:commands)
          @back.call
        end

        def back?
          redis.ping
          true
        rescue StandardError
          @redis = nil
          false
        end
      end
    end
  end
end
