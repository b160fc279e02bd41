# frozen_string_literal: true

require "fairlead/process/native_threads"

module Fairlead
  class Supervisor
    # Ends workers that are not ready in time, show no sign of life, or do not end when asked to: first they are asked, then
    # killed. The supervisor then replaces them. Spawners that do not end when asked to are killed, too. Time in which the
    # supervisor itself was stopped does not count: the workers probably were, too.
    class Watchdog
      # How often it checks the workers, in seconds; more often if worker_timeout is short.
      INTERVAL = 1.0

      # How long a worker may take to end by itself before it is killed, in seconds. One that hangs will not end.
      REPLACEMENT_GRACE = 2

      # +clock+: the RunningTime of the supervisor.
      def initialize(service, shared, children, generations, clock = RunningTime.new)
        @configuration = service.configuration
        @log = service.log
        @shared = shared
        @children = children
        @generations = generations
        @clock = clock
        @loading_since = {}
      end

      # Seconds until the next check.
      def pause(now)
        deadlines = [*@children, *@generations].filter_map(&:kill_at).map { |deadline| [deadline - now, 0].max }
        [INTERVAL, @configuration.worker_timeout / 4.0, *deadlines].min
      end

      def check(now)
        @generations.each { |generation| kill_spawner(generation) if overdue?(generation, now) }
        tell_of_slow_spawners(now)
        @children.each do |child|
          child.ending? ? kill_overdue(child, now) : replace_unfit(child, now)
        end
      end

      private

      # Seconds since its last sign of life.
      def silence(child) = @clock.counted(@shared.heartbeat_age(child.slot) || 0)

      def overdue?(process, now) = process.kill_at && process.kill_at <= now

      def kill_spawner(generation)
        @log.spawner_killed(generation)
        generation.kill
      end

      # How long an application may take to load is not known, so such a spawner goes on.
      def tell_of_slow_spawners(now)
        loading = @generations.select(&:loading?)
        @loading_since = loading.to_h { |generation| [generation, @loading_since[generation] || now] }.compare_by_identity
        @loading_since.each do |generation, since|
          next unless now - since > @configuration.worker_boot_timeout

          @log.spawner_slow(generation, @configuration.worker_boot_timeout)
          @loading_since[generation] = Float::INFINITY # once is enough
        end
      end

      def kill_overdue(child, now)
        return unless overdue?(child, now)

        @log.worker_killed(child)
        child.kill
      end

      def replace_unfit(child, now)
        if child.booted?
          return unless silence(child) > @configuration.worker_timeout

          @log.worker_hung(child, @configuration.worker_timeout, NativeThreads.describe(child.pid))
          @shared.give_up(child.slot) # its Ruby threads may never hear of it
        else
          return unless now - child.started_at > @configuration.worker_boot_timeout

          @log.worker_boot_timed_out(child, @configuration.worker_boot_timeout)
        end
        child.give_up(now + REPLACEMENT_GRACE)
      end
    end
  end
end
