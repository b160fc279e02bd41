# frozen_string_literal: true

module Fairlead
  module Control
    # The statistics with the keys that Puma has, for programs that watch Puma.
    class PumaStats
      # The version of Puma that has these keys.
      PUMA = "8.0.2"

      # What a process can say that knows the counters of the workers only.
      def self.of_workers(counts, max_threads:)
        workers = counts.fetch(:workers, [])
        children = workers.map do |worker|
          { index: worker[:slot], slot: worker[:slot], pid: nil, generation: 1, booted: true, ending: false, started_at: nil, heartbeat_age: nil }
        end
        status = { workers: workers.size, generation: 1, started_at: nil, children: children }
        new(Struct.new(:status).new(status), max_threads: max_threads, counts: counts).to_h
      end

      # The same for a process without workers.
      def self.of_engine(counts, max_threads:)
        new(Struct.new(:status).new({ workers: 0, started_at: nil }), max_threads: max_threads, counts: counts).to_h
      end

      # The counters of the workers, with the requests in the waiting room dealt out to those that serve: Puma has no such room, and
      # who watches the backlog must not miss them. +counts+: as Stats.to_h returns them.
      def self.deal(counts)
        workers = counts.fetch(:workers, [])
        share, rest = (counts.dig(:room, :waiting) || 0).divmod([workers.count { |worker| worker[:threads].positive? }, 1].max)
        workers.map do |worker|
          next worker unless worker[:threads].positive?

          worker.merge(queued: worker[:queued] + share + ((rest -= 1) >= 0 ? 1 : 0))
        end
      end

      # +server+: has #status. +peaks+: as Peaks#take returns them, or nil where nobody measures them.
      def initialize(server, max_threads:, peaks: nil, counts: Stats.to_h)
        @status = server.status
        @max_threads = max_threads
        @peaks = peaks || {}
        @counts = counts
        @workers = self.class.deal(counts)
      end

      # Symbol keys, in Puma's order.
      def to_h
        cluster? ? of_cluster : { started_at: time(@status[:started_at]), **of_pool(engine, :engine), versions: versions }
      end

      private

      def cluster? = @status[:workers].positive?

      def engine = @counts[:engines].first || {}

      def of_cluster
        children = @status[:children]
        {
          started_at: time(@status[:started_at]), workers: children.size, phase: phase(@status),
          booted_workers: children.count { |child| child[:booted] },
          old_workers: children.count { |child| child[:generation] != @status[:generation] },
          worker_status: children.map { |child| of_worker(child) }, versions: versions
        }
      end

      def of_worker(child)
        counts = @workers.find { |worker| worker[:slot] == child[:slot] }
        {
          started_at: time(child[:started_at]), pid: child[:pid], index: child[:index], phase: phase(child), booted: child[:booted],
          last_checkin: time(child[:heartbeat_age] ? Time.now - child[:heartbeat_age] : child[:started_at]),
          last_status: child[:booted] && counts ? of_pool(counts, child[:slot]) : {}
        }
      end

      # Puma counts the phased restarts, Fairlead the starts of the code.
      def phase(of) = of[:generation] - 1

      def of_pool(counts, key)
        busy = counts.fetch(:busy_threads, 0)
        {
          backlog: counts.fetch(:queued, 0), running: counts.fetch(:threads, 0), pool_capacity: [@max_threads - busy, 0].max,
          busy_threads: busy, io_threads: 0, backlog_max: 0, max_threads: @max_threads,
          requests_count: counts.fetch(:requests, 0), reactor_max: 0, **@peaks.fetch(key, {})
        }
      end

      def versions
        ruby = { engine: RUBY_ENGINE, version: RUBY_VERSION, patchlevel: RUBY_PATCHLEVEL }
        { puma: PUMA, fairlead: VERSION, ruby: ruby }
      end

      def time(time) = time&.getutc&.strftime("%Y-%m-%dT%H:%M:%SZ")
    end
  end
end
