# frozen_string_literal: true

module Fairlead
  module Tls
    # Updates the Offers of this process with settings that another process of the server has read, without reading a file. A
    # thread does that as long as there is work: a large revocation list takes seconds. It tries until it succeeds.
    class Follower
      # The longest time between two attempts, in seconds.
      LONGEST_RETRY = 60

      Wanted = Struct.new(:key, :offer, :settings, :failures, :at)
      private_constant :Wanted

      # +told+: called with the key and the reason of a failure, or nil, after each attempt; also on the thread.
      def initialize(offers, &told)
        @offers = offers
        @told = told
        @wanted = {}
        @lock = Mutex.new
        @news = ConditionVariable.new
      end

      # +key+, +fingerprint+: of an Offer in the other process. +io+: from HandedOver.write; nil if this process had no
      # descriptor for it, so that the supervisor has to send it again. Offers of another configuration have other files, and
      # are ignored.
      def take(key, fingerprint, io)
        return @told.call(key, "there was no descriptor for them (EMFILE)") unless io

        offer = @offers.find(key)
        return done_already(key, io) if offer.nil? || offer.fingerprint == fingerprint

        follow(Wanted.new(key, offer, HandedOver.read(io), 0, Clock.now))
      end

      private

      def done_already(key, io)
        io.close
        @lock.synchronize { @wanted.delete(key) }
        @told.call(key, nil)
      end

      def follow(wanted)
        @lock.synchronize do
          @wanted[wanted.key] = wanted
          @news.signal
          @thread = start_thread unless @thread&.alive?
        end
      rescue ThreadError # there is no room for a thread
        attempt(wanted)
      end

      def start_thread
        Thread.new { work }.tap { |thread| thread.name = "fairlead certificates" }
      end

      def work
        while (wanted = next_due)
          attempt(wanted)
        end
      end

      # Waits for the next offer that is due. Returns nil when nothing is wanted any more.
      def next_due
        @lock.synchronize do
          loop do
            first = @wanted.values.min_by(&:at)
            return @thread = nil unless first
            return first if first.at <= Clock.now

            @news.wait(@lock, first.at - Clock.now)
          end
        end
      end

      def attempt(wanted)
        reason = refusal(wanted)
        @lock.synchronize { reason ? put_off(wanted) : forget(wanted) }
        @told.call(wanted.key, reason)
      end

      def refusal(wanted)
        raise Invalid, "it comes from another version of Fairlead" unless wanted.settings

        wanted.offer.take(wanted.settings)
        nil
      rescue Invalid => e
        e.message
      end

      def put_off(wanted)
        wanted.failures += 1
        wanted.at = Clock.now + [2**(wanted.failures - 1), LONGEST_RETRY].min
      end

      # Keeps a newer one.
      def forget(wanted)
        @wanted.delete(wanted.key) if @wanted[wanted.key].equal?(wanted)
      end
    end
  end
end
