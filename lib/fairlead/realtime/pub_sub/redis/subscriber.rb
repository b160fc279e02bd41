# frozen_string_literal: true

require "securerandom"

module Fairlead
  module PubSub
    class Redis
      # The connection that receives messages, and its thread. A Wanted says what it has to subscribe to; a message on
      # #own_channel makes it look there. It sends one command for each reply it reads, because redis-rb 4 gives up a
      # connection on which it has written more than it has read.
      class Subscriber
        attr_reader :own_channel

        def initialize(options, wanted, outage, &deliver)
          @options = options
          @wanted = wanted
          @outage = outage
          @deliver = deliver
          @own_channel = "fairlead:#{SecureRandom.uuid}"
          @lock = Mutex.new
        end

        def running? = !@thread.nil?

        def start
          @lock.synchronize do
            next if running?

            @thread = Thread.new { run }
            @thread.name = "fairlead redis listener"
          end
        end

        def close
          @lock.synchronize do
            @thread&.kill&.join
            @thread = nil
          end
        end

        private

        def run
          failures = 0
          loop do
            started = now
            listen
          rescue StandardError => e
            @outage.begin(:subscriber, e)
            @wanted.interrupt
            failures = 0 if now - started > PAUSES.last
            sleep PAUSES[failures] || PAUSES.last
            failures += 1
          end
        end

        # Raises when the connection has ended.
        def listen
          @wanted.reset
          @last = nil
          redis = ::Redis.new(**@options)
          redis.subscribe(@own_channel) { |on| register_callbacks(redis, on) }
          raise IOError, "Redis has closed the connection"
        ensure
          redis&.close
        end

        def register_callbacks(redis, on)
          on.subscribe { |name, _| confirmed(redis) { name == @own_channel ? @outage.end(:subscriber) : @wanted.confirm([:channel, name.b]) } }
          on.psubscribe { |name, _| confirmed(redis) { @wanted.confirm([:pattern, name.b]) } }
          on.unsubscribe { confirmed(redis) }
          on.punsubscribe { confirmed(redis) }
          on.message { |name, text| name == @own_channel ? catch_up(redis) : take(:channel, name.b, text.b) }
          on.pmessage { |pattern, name, text| take(pattern.b, name.b, text.b) }
        end

        def confirmed(redis)
          @last = nil
          yield if block_given?
          catch_up(redis)
        end

        def catch_up(redis)
          command, names = @wanted.next_command
          redis.public_send(command, *names) if command
        end

        # Redis sends a message once for each subscription that matches, one after the other. So a message is a repetition if
        # it equals the last one and has come for another subscription. If it comes for the same subscription again, it has
        # been published again.
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

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
