# frozen_string_literal: true

module Bench
  module Simulation
    # One kind of clients: their number, and the application's steps for one of their requests, each `[:sleep, seconds]`
    # or `[:compute, seconds]`.
    Kind = Struct.new(:name, :clients, :steps)

    # A client with a kept connection: it sends its next request when it has the response, as long as the load (Load)
    # continues.
    class Client
      # Seconds between a response and the arrival of the next request: the network and the load tool.
      TURNAROUND = 0.000_06

      attr_reader :kind
      attr_accessor :worker

      def initialize(calendar, kind, server, load)
        @calendar = calendar
        @kind = kind
        @server = server
        @load = load
      end

      def ask
        return unless @load.take

        @asked = @calendar.now
        @server.arrive(self)
      end

      def answered
        @load.answered(kind, @asked, @calendar.now)
        @calendar.after(TURNAROUND) { ask }
      end
    end
  end
end
