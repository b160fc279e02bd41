# frozen_string_literal: true

module Fairlead
  module Test
    # Stands in for Fairlead::Native in unit tests of what is written in Ruby: counts subscribers as it does, and calls
    # deferred jobs on a thread of its own once it runs.
    class FakeNative
      # What was published: [name, message, scope].
      attr_reader :published

      def initialize
        @subscribers = Hash.new { |all, name| all[name] = {} }
        @published = []
        @jobs = Thread::Queue.new
      end

      # From now on there is an engine.
      def run
        @thread = Thread.new do
          while (job = @jobs.pop)
            job.call
          end
        end
      end

      def end
        @jobs.close
        @thread&.join
        @thread = nil
      end

      def running? = !@thread.nil?

      def defer(job)
        return unless running?

        @jobs << job
        true
      rescue ClosedQueueError
        nil
      end

      def subscribe(name, match, callable) = join(:process, name, match, callable)

      def unsubscribe(name) = running? ? leave(:process, name) || nil : nil

      def publish(name, message, scope)
        @published << [name, message, scope]
        running?
      end

      # --- the side of a client

      def join(who, name, match = 0, callable = nil)
        return unless running?

        @subscribers[name][who] = [match, callable]
        @subscribers[name].size
      end

      # False when it was not subscribed.
      def leave(who, name)
        @subscribers[name].delete(who) ? @subscribers[name].size : false
      end

      # Who is subscribed to that name: [match, callable] by subscriber.
      def subscribers(name) = @subscribers[name]
    end
  end
end
