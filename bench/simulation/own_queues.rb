# frozen_string_literal: true

module Bench
  module Simulation
    # Puma's distribution of requests: each worker has its own queue, and a connection stays in the worker that has
    # accepted it. A thread that has responded waits for the next request of the same client, up to a number of requests
    # in a row; only then it takes another client.
    class OwnQueues
      # in_a_row: number of requests of one client that a thread runs before it takes another client.
      def initialize(calendar, workers, random, in_a_row:)
        @calendar = calendar
        @workers = workers
        @random = random
        @in_a_row = in_a_row
        @stays = {}
      end

      # Every worker accepts as many as it has threads; the rest is distributed at random.
      def connect(clients)
        places = @workers.flat_map { |worker| [worker] * worker.free }.shuffle(random: @random)
        clients.shuffle(random: @random).each { |client| client.worker = places.shift || @workers.sample(random: @random) }
      end

      def arrive(client)
        worker = client.worker
        if (row = @stays.delete(client))
          run(worker, client, row)
        elsif worker.free.positive?
          worker.free -= 1
          run(worker, client, 0)
        else
          worker.queue << client
        end
      end

      private

      def run(worker, client, row)
        worker.run(client) do
          if row + 1 < @in_a_row
            @stays[client] = row + 1
          else
            worker.free += 1
          end
          client.answered
          take_another(worker)
        end
      end

      def take_another(worker)
        return unless worker.free.positive? && (client = worker.queue.shift)

        worker.free -= 1
        run(worker, client, 0)
      end
    end
  end
end
