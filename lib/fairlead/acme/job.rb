# frozen_string_literal: true

require "json"

module Fairlead
  module Acme
    # The process that orders one certificate, as seen by the one that has started it.
    class Job
      # How long it may take, in seconds. The authority's slowness has shorter limits of its own.
      LIMIT = 15 * 60

      # Neither gems nor what Bundler has set up: it needs only the standard library.
      WITHOUT = { "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil }.freeze

      LIB = File.dirname(__dir__, 2)
      private_constant :LIB

      # Arguments as for Program.
      def initialize(order, folder, challenge)
        @input = JSON.generate(order: order.to_h, folder: folder, challenge: challenge)
        @lock = Mutex.new
      end

      # Starts it and waits; returns what Program#run has returned.
      def run
        output = start or return failed("it was stopped")
        text = read(output)
        text.empty? ? failed(@waiter.value.to_s) : JSON.parse(text.force_encoding(Encoding::UTF_8), symbolize_names: true)
      rescue SystemCallError, JSON::ParserError => e
        failed(e.message)
      ensure
        output&.close
      end

      # Ends it, or prevents its start.
      def stop
        @lock.synchronize do
          @stopped = true
          signal("TERM")
        end
      end

      def stopped? = @stopped == true

      private

      def start
        input, order = IO.pipe
        output, outcome = IO.pipe
        @lock.synchronize do
          return if @stopped

          @waiter = Process.detach(Process.spawn(WITHOUT, *command, in: input, out: outcome))
        end
        order.write(@input)
        output
      ensure
        [input, order, outcome].compact.each(&:close)
      end

      def command = [RbConfig.ruby, "--disable=gems", "-I", LIB, "-r", "fairlead/acme/program", "-e", "Fairlead::Acme::Program.run"]

      # What it says until its end.
      def read(output)
        deadline = now + LIMIT
        text = String.new
        while output.wait_readable([deadline - now, 0].max)
          chunk = output.read_nonblock(65_536, exception: false)
          return text unless chunk.is_a?(String)

          text << chunk
        end
        signal("KILL")
        text
      end

      def signal(name)
        Process.kill(name, @waiter.pid) if @waiter&.alive?
      rescue Errno::ESRCH
        nil
      end

      def failed(words) = { outcome: "failed", type: "process", message: "the process that orders has failed: #{words}", retry_after: nil }

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
