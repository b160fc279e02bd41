# frozen_string_literal: true

require "stringio"

module Fairlead
  module Test
    # Stands in for a Supervisor or a Single in unit tests of what runs beside them: has the status it is given and notes what it is
    # asked for. Its main loop turns while #turns is true.
    class FakeServer
      STARTED_AT = Time.utc(2026, 1, 2, 3, 4, 5)

      attr_reader :asked
      attr_accessor :status, :turns

      def initialize(workers: 0, **status)
        children = Array.new(workers) { |slot| child(slot) }
        @status = { pid: 100, state: :ready, generation: 1, started_at: STARTED_AT, workers: workers, restart: nil, children: children }
        change(**status)
        @asked = []
        @turns = true
        @pings = []
      end

      # Replaces parts of the status.
      def change(**status)
        @status = @status.merge(status)
      end

      def ask(request) = @asked << request

      def ping(&block)
        @pings << block
        turn if turns
      end

      # One turn of the main loop.
      def turn = @pings.shift(@pings.size).each(&:call)

      def child(slot, **changes)
        {
          index: slot, slot: slot, pid: 200 + slot, generation: 1, booted: true, ending: false, started_at: STARTED_AT, heartbeat_age: 0.5
        }.merge(changes)
      end
    end

    # An EventLog that keeps its lines, for tests of what reports to it.
    class CollectedLog < Fairlead::EventLog
      def initialize(**options)
        super(output: @messages = StringIO.new, errors: @errors = StringIO.new, **options)
      end

      def text = @messages.string + @errors.string
    end
  end
end
