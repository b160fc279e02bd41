# frozen_string_literal: true

module Fairlead
  class Supervisor
    # The workers: starts those that are missing, ends those that are too many, replaces those that die or hang. Each index from
    # 0 up to +wanted+ is to have a worker of the current generation.
    class Workforce
      attr_reader :children, :generations, :wanted

      # The block returns the time in seconds.
      def initialize(service, shared, generations, &clock)
        @service = service
        @log = service.log
        @shared = shared
        @generations = generations
        @wanted = service.configuration.workers
        @children = Children.new
        @clock = clock
        @back_off = BackOff.new(&clock)
      end

      # Whether each index has a worker that serves.
      def complete? = (0...@wanted).all? { |index| @children.of(index).any? { |child| child.booted? && !child.ending? } }

      def change_wanted(by)
        return @log.last_worker_kept if (@wanted + by).zero?
        return @log.workers_at_limit(SLOTS) if @wanted + by > SLOTS

        @shared.add(@wanted) if by.positive?
        @wanted += by
        @log.workers_wanted(@wanted)
      rescue *DescriptorError::SYSTEM_ERRORS => e
        @log.worker_not_added(DescriptorError.new(e))
      end

      # --- steps

      # Starts the missing workers, of that generation.
      def start_missing(generation)
        return unless generation.ready?

        (0...@wanted).each { |index| start_worker(index, generation) unless @children.any_for?(index) || @back_off.remaining }
      end

      # Starts a worker; false if there is no room for it.
      def start_worker(index, generation)
        slot = @children.free_slot(index, SLOTS) or return false
        @shared.add(slot)
        @shared.reset(slot)
        ours, theirs = Link.pair
        child = Child.new(index: index, slot: slot, generation: generation.number, link: ours, now: now)
        generation.fork_worker(child, theirs, @shared.mailbox(slot))
        theirs.close
        @children.add(child)
      rescue *DescriptorError::SYSTEM_ERRORS => e
        @log.worker_not_added(DescriptorError.new(e))
        @back_off.fail
        true
      end

      # Takes over a worker of an earlier program of this process.
      def adopt(child)
        @children.add(child)
      end

      # The worker that has served longest.
      def warmest = @children.select { |child| child.booted? && !child.ending? }.min_by(&:started_at)

      # The number of requests that the busiest worker has served.
      def most_requests
        @shared.stats[:workers].map { |worker| worker.fetch(:requests) }.max || 0
      end

      # Whether no worker is about to become a spawner.
      def none_promoted? = @children.none?(&:promoted_to)

      # Ends the workers of a generation that have not been ready yet.
      def give_up_unready(generation)
        @children.each { |child| child.terminate(now + EXIT_GRACE) if child.generation == generation.number && !child.booted? }
      end

      def end_surplus
        @children.each { |child| terminate(child) if child.index >= @wanted && !child.ending? }
      end

      # Has a worker finish what has arrived, and end.
      def terminate(child) = child.terminate(deadline)

      # Has all of them end; see Child#terminate.
      def terminate_all(how, kill_at, *details) = @children.each { |child| child.terminate(kill_at, how, *details) }

      # Takes note of workers that have ended; returns [[child, Process::Status], …].
      def reap
        @children.reap.each { |child, _| @shared.reset(child.slot) } # workers that drain must not leave transfers to it
      end

      # New code may start at once.
      def forgive = @back_off.forgive

      # Seconds until a worker may be started again; nil if it may now.
      def back_off = @back_off.remaining

      # When a process that is asked to end now is to be killed.
      def deadline = now + @service.configuration.shutdown_timeout + EXIT_GRACE

      def now = @clock.call

      # A worker that has died early lets the next ones wait. Returns how often workers have done so; those that were started together
      # count once.
      def hold_back(child)
        return 0 if child.booted? && now - child.started_at > EARLY
        return @back_off.failures if @back_off.counted?(child.started_at)

        delay = @back_off.fail(child.started_at)
        @log.next_attempt(delay) if delay.positive? && @back_off.failures < ATTEMPTS
        @back_off.failures
      end
    end
  end
end
