# frozen_string_literal: true

require "stringio"

module Fairlead
  module Test
    # Stands in for a process of the server in unit tests of plugins: notes what it is asked for.
    class FakeServer
      def asked = @asked ||= []

      def ask(request) = asked << request
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
