# frozen_string_literal: true

module Fairlead
  module Control
    # Statistics with Puma's keys, in Puma's order, for a process that cannot ask the control server: counters, but neither
    # processes nor times. crates/supervisor/src/control/puma_stats.rs has all of them.
    module PumaStats
      # The version of Puma that has these keys.
      PUMA = "8.0.2"

      class << self
        # Statistics of a process without workers. +counts+: as Stats.to_h returns them. Symbol keys.
        def of_engine(counts, max_threads:)
          { started_at: nil, **pool(counts[:engines].first || {}, max_threads), versions: versions }
        end

        # The same with workers.
        def of_workers(counts, max_threads:)
          statuses = deal(counts).map { |worker| of_worker(worker, pool(worker, max_threads)) }
          {
            started_at: nil, workers: statuses.size, phase: 0, booted_workers: statuses.size, old_workers: 0,
            worker_status: statuses, versions: versions
          }
        end

        private

        # Distributes the requests in the waiting room to the serving workers: Puma has no such room, and people who watch the
        # backlog must see them.
        def deal(counts)
          workers = counts.fetch(:workers, [])
          share, rest = (counts.dig(:room, :waiting) || 0).divmod([workers.count { |worker| worker[:threads].positive? }, 1].max)
          workers.map do |worker|
            next worker unless worker[:threads].positive?

            worker.merge(queued: worker[:queued] + share + ((rest -= 1) >= 0 ? 1 : 0))
          end
        end

        def of_worker(worker, pool)
          { started_at: nil, pid: nil, index: worker[:slot], phase: 0, booted: true, last_checkin: nil, last_status: pool }
        end

        def pool(counts, max_threads)
          busy = counts.fetch(:busy_threads, 0)
          {
            backlog: counts.fetch(:queued, 0), running: counts.fetch(:threads, 0), pool_capacity: [max_threads - busy, 0].max,
            busy_threads: busy, io_threads: 0, backlog_max: 0, max_threads: max_threads,
            requests_count: counts.fetch(:requests, 0), reactor_max: 0
          }
        end

        def versions
          ruby = { engine: RUBY_ENGINE, version: RUBY_VERSION, patchlevel: RUBY_PATCHLEVEL }
          { puma: PUMA, fairlead: VERSION, ruby: ruby }
        end
      end
    end
  end
end
