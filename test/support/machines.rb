# frozen_string_literal: true

require_relative "nats_server"
require_relative "postgres_server"
require_relative "real_time"
require_relative "redis_server"

module Fairlead
  module Test
    # For test cases with servers that a broker connects, as on several machines. A class that includes it has `broker_class`. The
    # handler of a server sends "worker" and its process ID first.
    module Machines
      include RealTimeServing

      def setup
        skip broker_class.missing if broker_class.missing

        @broker = broker_class.new
      end

      def after_teardown
        super
      ensure
        @broker&.destroy
      end

      private

      # Returns a client of each of two workers, by process ID.
      def clients_by_worker(server)
        by_worker = {}
        wait_until("clients in both workers") do
          client = web_socket(server)
          by_worker[Integer(client.receive.last[/\Aworker (\d+)/, 1], 10)] ||= client
          by_worker.size == 2
        end
        by_worker
      end

      def clients_of_both_workers(server) = clients_by_worker(server).values

      # Takes what has come, and returns all texts that are not taken otherwise.
      def heard(client)
        client.take_in while client.socket.wait_readable(0)
        client.messages.map(&:last)
      end
    end
  end
end
