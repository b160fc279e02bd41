# frozen_string_literal: true

module Bench
  module Simulation
    # What clients of one kind ask for: how many there are, and the steps of the application for one of their requests, each
    # `[:sleep, seconds]` or `[:compute, seconds]`.
    Kind = Struct.new(:name, :clients, :steps)

    # A client with a connection that is kept: it sends its next request when it has the response, as long as the load (Load) goes
    # on.
    class Client
      # Seconds between a response and the next request at the server: the network and the load tool.
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
