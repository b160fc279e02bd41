# frozen_string_literal: true

require "monitor"

module Fairlead
  module PubSub
    class Redis
      # The connection for commands. When a command fails, an outage begins: commands fail at once until a thread has found
      # that Redis is back.
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
          rescue StandardError => e # redis-rb raises many kinds of errors; after each of them the message is not published
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

        # A command on a connection that broke while it was idle has not arrived, so it is repeated. A command that timed
        # out may have arrived, so it is not.
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
