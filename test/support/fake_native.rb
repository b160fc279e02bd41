# frozen_string_literal: true

module Fairlead
  module Test
    # Replaces Fairlead::Native in unit tests of Ruby code: counts subscribers like the extension, and calls deferred jobs on
    # a thread of its own while it runs.
    class FakeNative
      # Publications so far: [name, message, scope].
      attr_reader :published

      def initialize
        @subscribers = Hash.new { |all, name| all[name] = {} }
        @published = []
        @jobs = Thread::Queue.new
      end

      # From now on, the engine exists.
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

      # --- methods of a client

      def join(who, name, match = 0, callable = nil)
        return unless running?

        @subscribers[name][who] = [match, callable]
        @subscribers[name].size
      end

      # Returns false if +who+ was not subscribed.
      def leave(who, name)
        @subscribers[name].delete(who) ? @subscribers[name].size : false
      end

      # Subscribers of that name: subscriber => [match, callable].
      def subscribers(name) = @subscribers[name]
    end
  end
end
