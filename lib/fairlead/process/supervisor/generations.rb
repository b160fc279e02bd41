# frozen_string_literal: true

module Fairlead
  class Supervisor
    # The spawners that run: that of the current generation, during a restart also that of the next one, and those that are
    # about to end.
    class Generations
      include Enumerable

      # The Generation that workers are to be of. nil before the first.
      attr_accessor :current

      # +spawning+: starts spawners. The block is the clock of a BackOff.
      def initialize(spawning, &clock)
        @spawning = spawning
        @back_off = BackOff.new(&clock)
        @by_number = {}
        @last_number = 0
      end

      def each(&block) = @by_number.values.each(&block)

      def empty? = @by_number.empty?

      def [](number) = @by_number[number]

      # Starts the spawner of the next generation. +fresh+: as a process that shares nothing with this one.
      def start(fresh:) = add(@spawning.start(next_number, fresh: fresh))

      # The number of the next generation.
      def next_number = @last_number += 1

      def add(generation)
        @last_number = [@last_number, generation.number].max
        @by_number[generation.number] = generation
      end

      # The spawner of the current generation has ended by itself.
      def lost(generation)
        @back_off.fail
        @lost = generation
      end

      # Starts a spawner in the place of one that was lost. It loads the application as it is now.
      def replace_lost
        return if @lost.nil? || @back_off.remaining

        @current = add(@spawning.start(@lost.number, fresh: true, replaces: true))
        @lost = nil
      end

      # Seconds until that is due; nil if there is nothing to do.
      def back_off = @lost && @back_off.remaining

      # Asks all spawners but that of +kept+ to end.
      def end_all(kill_at, except: nil)
        each { |generation| generation.end(kill_at) unless generation.equal?(except) || generation.ending? }
      end

      # Removes the spawners that have ended and returns [[generation, Process::Status], …].
      def reap
        filter_map do |generation|
          status = Reaper.status(generation.pid, generation.link) or next
          @by_number.delete(generation.number)
          [generation, status]
        end
      end
    end
  end
end
