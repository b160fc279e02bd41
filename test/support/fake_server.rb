# frozen_string_literal: true

require "stringio"

module Fairlead
  module Test
    # Replaces a process of the server in unit tests of plugins, and records the calls.
    class FakeServer
      def asked = @asked ||= []

      def ask(request) = asked << request
    end

    # An EventLog that collects its lines, for tests of the objects that report to it.
    class CollectedLog < Fairlead::EventLog
      def initialize(**options)
        super(output: @messages = StringIO.new, errors: @errors = StringIO.new, **options)
      end

      def text = @messages.string + @errors.string
    end
  end
end
