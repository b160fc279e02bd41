# frozen_string_literal: true

require_relative "clients"
require_relative "ledger"

module Fairlead
  module Soak
    # Clients of all kinds, as many at a time as there are threads. The kind and the requests of each follow from its number
    # and the seed; with a condition for the end, all kinds take turns, so that none is missing for long.
    class Crowd
      include Test::Waiting

      # Longest time until the block of #run is true, in seconds. Threads that still wait for the server so long after the last client has
      # begun have lost their responses.
      LATEST = 3 * Site::PATIENCE

      attr_reader :ledger, :kinds

      # +lots+: kinds of clients, each as often as its share. +first+: one less than the number of the first client.
      def initialize(site, seed, lots, size:, first: 0)
        @site = site
        @seed = seed
        @lots = lots
        @size = size
        @ledger = Ledger.new
        @kinds = lots.uniq.map(&:kind)
        @count = first
        @lock = Mutex.new
      end

      # Starts clients for so many seconds, then until the block, if any, is true; returns once all have left, or when the
      # server has ended.
      def run(seconds, &enough)
        finish = monotonic + seconds
        last = enough ? finish + LATEST : finish
        threads = Array.new(@size) { Thread.new { one(enough) while comes_another?(finish, last, enough) } }
        threads.each { |thread| thread.join([last + LATEST - monotonic, 0.1].max) || give_up(thread) }
      end

      private

      def comes_another?(finish, last, enough)
        @site.running? && !@site.spoiled && (monotonic < finish || (enough && !enough.call && monotonic < last))
      end

      def one(in_turn)
        number = @lock.synchronize { @count += 1 }
        kind = in_turn ? @lots.uniq.rotate(number).first : @lots.sample(random: Random.new(@seed ^ number))
        Thread.current[:client] = [kind, number]
        outcome, text = kind.new(@site, @seed, number).call
        return unless @site.running? || outcome != :lost

        @ledger.record(kind.kind, number, outcome, text)
      end

      def give_up(thread)
        kind, number = thread[:client]
        @ledger.record(kind.kind, number, :lost, "received nothing more:\n#{thread.backtrace&.join("\n")}")
        thread.kill
      end
    end
  end
end
