# frozen_string_literal: true

module Bench
  module Simulation
    # Fairlead's distribution of requests. Each worker has a queue; a request that finds no free thread in its worker
    # for a while goes to the waiting room, the queue of all workers, from which every thread that becomes free takes
    # first. A connection stays in the worker of its last request.
    class OneQueue
      # Interval of the monitor's checks in a worker, and the time after which a waiting request goes to the waiting
      # room: if no request has ended since the last check, and if one has.
      TICK = 0.001
      PATIENCE = 0.001
      LONG_PATIENCE = 0.02

      Waiting = Struct.new(:client, :since)

      def initialize(calendar, workers, random)
        @calendar = calendar
        @workers = workers
        @random = random
        @room = []
        @ended = workers.to_h { |worker| [worker, 0] }
        @seen = @ended.dup
        @watched = {}
      end

      # A new connection goes to the worker with the fewest.
      def connect(clients)
        clients.each_with_index { |client, index| client.worker = @workers[index % @workers.size] }
      end

      def arrive(client)
        worker = client.worker
        return start(worker, client) if worker.free.positive?

        worker.queue << Waiting.new(client, @calendar.now)
        watch(worker) if @workers.size > 1
      end

      private

      def start(worker, client)
        worker.free -= 1
        client.worker = worker
        worker.run(client) do
          @ended[worker] += 1
          worker.free += 1
          client.answered
          find_work(worker)
        end
      end

      def find_work(worker)
        waiting = @room.shift || worker.queue.shift
        start(worker, waiting.client) if waiting
      end

      # The monitor runs while a request waits.
      def watch(worker)
        return if @watched[worker]

        @watched[worker] = true
        @calendar.after(TICK * (0.5 + @random.rand)) { look(worker) }
      end

      def look(worker)
        @watched[worker] = false
        progress = @ended[worker] != @seen[worker]
        @seen[worker] = @ended[worker]
        shed(worker, progress ? LONG_PATIENCE : PATIENCE) if worker.free.zero?
        watch(worker) unless worker.queue.empty?
      end

      def shed(worker, patience)
        while (oldest = worker.queue.first) && oldest.since <= @calendar.now - patience
          @room << worker.queue.shift
        end
        @workers.each { |other| find_work(other) if other.free.positive? }
      end
    end
  end
end
