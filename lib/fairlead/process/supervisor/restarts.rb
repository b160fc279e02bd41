# frozen_string_literal: true

module Fairlead
  class Supervisor
    # Begins restarts and ends them: what runs now, what came of the last one, and whether there is to be another one after it.
    class Restarts
      # The Restart that people want to know of: the one that runs, or else the last one.
      attr_reader :last

      def initialize(workforce, generations, log)
        @workforce = workforce
        @generations = generations
        @log = log
        @running = @last = @next = nil
      end

      # Where missing workers come from: the generation that is being brought in; nil when there is none.
      def source = @running&.replacing? ? @running.target : nil

      def running? = !@running.nil?

      # A hot restart that cannot even begin.
      def refuse(problem)
        @last = Restart.new(:hot, @workforce).tap { |restart| restart.fail(problem) }
        @log.restart_refused(problem)
      end

      # Whether that generation is being brought in.
      def target?(generation) = !generation.nil? && generation.equal?(@running&.target)

      # Begins a restart. One whose new code is still being loaded gives way; one that replaces workers is finished first.
      def begin(kind)
        return @next = kind if @running && !gives_way?

        abandon if @running
        @workforce.forgive
        target = @generations.start(fresh: kind != :hot)
        follow(Restart.new(kind, @workforce, target: target))
        @log.restart_begun(@last, target)
      end

      # A hot restart is due. One whose new code is still being loaded gives way: that may take for ever.
      def give_way
        return unless @running && gives_way?

        @log.restart_gives_way(@running)
        abandon
      end

      # Makes the worker that has served longest a spawner, and replaces the others by copies of it.
      def refork(listeners)
        warmest = @workforce.warmest
        return @log.refork_refused(@running ? "a restart is under way" : "no worker serves") if @running || warmest.nil?

        warmest.promote(@generations.next_number, listeners, @workforce.deadline)
        follow(Restart.new(:refork, @workforce))
        @log.refork_begun(warmest)
      end

      # As soon as a worker of the code that was loaded last has served so many requests, there is a refork: once.
      def refork_when_warm(requests, listeners)
        generation = @generations.current
        return if requests.zero? || @running || generation.nil? || generation.warm? || @workforce.most_requests < requests

        refork(listeners)
      end

      # The worker is a spawner now. The refork may have failed meanwhile.
      def promoted(generation)
        @running&.kind == :refork ? @running.promoted(generation) : generation.end(@workforce.deadline)
      end

      def target_failed(reason) = @running.fail(reason)

      def worker_died(reason) = @running.worker_died(reason)

      # Takes the next step.
      def advance
        @running.fail("the worker ended") if @running&.kind == :refork && @running.target.nil? && @workforce.none_promoted?
        return unless @running&.advance

        @running.state == :done ? done : failed
      end

      # The server ends.
      def forget
        @running&.fail("the server was asked to end") if @running&.kind != :rollback
        @running = @next = nil
      end

      private

      def gives_way? = @running.loading? && @running.kind != :refork

      def follow(restart)
        @running = restart
        @last = restart unless restart.kind == :rollback
      end

      def done
        generation = @generations.current = @running.target
        @generations.end_all(@workforce.deadline, except: generation)
        generation.booted
        @log.restart_done(@running, generation) unless @running.kind == :rollback
        @running = nil
        begin_next
      end

      # The old generation takes over again what the new one had.
      def failed
        @log.restart_failed(@running, @generations.current)
        abandon
        old = @generations.current
        return begin_next unless @workforce.children.any? { |child| child.generation != old.number && !child.ending? }

        follow(Restart.new(:rollback, @workforce, target: old))
      end

      def abandon
        target = @running.target
        @running.fail("another restart was asked for") if @running.running?
        @running = nil
        return if target.nil? || target.equal?(@generations.current) # a rollback brings in what is current

        @workforce.give_up_unready(target)
        target.end(@workforce.now + EXIT_GRACE)
      end

      def begin_next
        kind, @next = @next
        self.begin(kind) if kind
      end
    end
  end
end
