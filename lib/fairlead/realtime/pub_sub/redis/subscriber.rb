# frozen_string_literal: true

require "securerandom"

module Fairlead
  module PubSub
    class Redis
      # The connection that listens, and its thread. What it is subscribed to follows a Wanted: it looks there whenever a
      # message comes on a channel of its own. It sends one command for each thing it reads, because redis-rb 4 gives up a
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

        # What matches several subscriptions comes once for each, in a row. So it is new unless it is the same as the last
        # and comes for another subscription than those so far: between changes of the subscriptions, each publication
        # comes for the same ones.
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
