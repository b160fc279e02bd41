# frozen_string_literal: true

require "minitest"

module Fairlead
  module Test
    # For test cases that require a file of lib/fairlead/compat, which changes the whole process: each test runs in a forked
    # process of its own.
    module Apart
      def run
        reader, writer = IO.pipe
        pid = fork do
          writer.write(Marshal.dump(super))
          writer.close
          exit!
        end
        writer.close
        Marshal.load(reader.read) # rubocop:disable Security/MarshalLoad -- our own child wrote it
      ensure
        Process.wait(pid)
      end
    end

    # A client that records the calls of its methods. They have the signatures of Fairlead::Client.
    class FakeClient
      attr_reader :sent, :asked, :protocol
      attr_accessor :pending, :env, :handler, :full

      def initialize(protocol = :websocket)
        @protocol = protocol
        @sent = []
        @asked = []
        @pending = 0
        @env = {}
        @open = true
      end

      def open? = @open

      def write(data, **event)
        return false if full || !open?

        sent << [data, event]
        true
      end

      def close
        @open = false
        @pending = -1
        nil
      end

      def subscribe(name, **options, &block)
        asked << [:subscribe, name, options, block].compact
        name if open?
      end

      def unsubscribe(name)
        asked << [:unsubscribe, name]
        true
      end

      def publish(*arguments)
        asked << [:publish, *arguments]
        true
      end
    end
  end
end
