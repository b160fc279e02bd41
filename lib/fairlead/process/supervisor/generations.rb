# frozen_string_literal: true

module Fairlead
  class Supervisor
    # The spawners that run: that of the current generation, during a restart also that of the next one, and those that are
    # about to end.
    class Generations
      include Enumerable

      # The Generation that workers are to be of. nil before the first.
      attr_reader :current

      # +spawning+: starts spawners.
      def initialize(spawning)
        @spawning = spawning
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

      def current=(generation)
        @current = generation
      end

      # Replaces a spawner that has ended by a new one, of the same generation.
      def start_again(generation) = add(@spawning.start(generation.number, fresh: true)).tap { |new| @current = new if generation.equal?(@current) }

      # Asks all spawners but that of +kept+ to end.
      def end_all(kill_at, except: nil)
        each { |generation| generation.end(kill_at) unless generation.equal?(except) || generation.ending? }
      end

      # Removes the spawners that have ended and returns them.
      def reap
        select { |generation| Reaper.status(generation.pid, generation.link) }.each { |generation| @by_number.delete(generation.number) }
      end
    end
  end
end
