# frozen_string_literal: true

module Fairlead
  class Supervisor
    # A restart: brings in a generation of workers for another, one worker at a time. It is told that time has passed (#advance)
    # and finds the next step from what there is, so a worker that dies meanwhile changes nothing.
    #
    #   loading ──the spawner is ready──▶ replacing ──no other workers are left──▶ done
    #      └──────────────┴── the spawner, or one of its workers, cannot start ──▶ failed
    #
    # After a failure the workers that were replaced already are replaced again, by those of the old generation (:rollback).
    class Restart
      # How often a new worker may die before it is ready.
      PATIENCE = 1

      # :phased, :hot, :refork or :rollback; the Generation to bring in, nil as long as a refork has none; why it has failed;
      # the time of the last change, for people.
      attr_reader :kind, :target, :error, :at

      def initialize(kind, workforce, target: nil)
        @kind = kind
        @workforce = workforce
        @target = target
        @state = :running
        @deaths = 0
        @at = Time.now
      end

      # :running, :done or :failed
      attr_reader :state

      def running? = @state == :running
      def loading? = running? && !@target&.ready?
      def replacing? = running? && @target&.ready? == true

      # For a refork: a worker has become the spawner.
      def promoted(generation)
        @target = generation
      end

      def fail(reason)
        @error = reason
        finish(:failed)
      end

      # A new worker has died before it was ready.
      def worker_died(description)
        @deaths += 1
        fail(description) if @deaths > PATIENCE
      end

      # Takes the next step. Returns whether the restart is over.
      def advance
        return true unless running?
        return false unless replacing?

        fresh, old = @workforce.children.partition { |child| child.generation == @target.number }
        return false if fresh.any? { |child| !child.booted? && !child.ending? } || old.any?(&:ending?)

        replace(old, fresh.reject(&:ending?).map(&:index))
      end

      # "phased restart", for people.
      def name = kind == :refork ? "refork" : "#{kind} restart"

      # For Supervisor#status.
      def to_h = { kind: kind, state: state, error: error, at: at }

      private

      # +replaced+: the indexes that have a new worker. If there is no room for one more worker, the old one goes first.
      def replace(old, replaced)
        child = old.find { |one| replaced.include?(one.index) } || old.min_by(&:index)
        return @workforce.complete? && finish(:done) unless child

        @workforce.terminate(child) if replaced.include?(child.index) || !@workforce.start_worker(child.index, @target)
        false
      end

      def finish(state)
        @state = state
        @at = Time.now
        true
      end
    end
  end
end
