# frozen_string_literal: true

require_relative "site"

module Fairlead
  module Soak
    # Kills workers with SIGKILL now and then. Records the connections that this takes from their clients right before, while
    # the worker is stopped; every other connection must be served as usual, even if its request is in the waiting room. Some
    # workers are only stopped for a while, which may only cost time.
    class Killer
      # Share of the workers that are killed, and the stop of the others in seconds.
      KILLED = 0.75
      HALTED = 0.7

      include Test::Waiting

      attr_reader :count

      # +pause+: a range of seconds between two of them.
      def initialize(site, random, pause)
        @site = site
        @random = random
        @pause = pause
        @count = 0
      end

      # Kills while the block runs.
      def run
        stop = Queue.new
        thread = Thread.new { kill until wait(stop) }
        yield
      ensure
        stop&.push(true)
        thread&.value
      end

      private

      # Returns true if it is time to end, false if it is time to kill.
      def wait(stop)
        finish = monotonic + @random.rand(@pause)
        sleep(0.05) while stop.empty? && monotonic < finish
        !stop.empty?
      end

      def kill
        pid = @site.serving.sample(random: @random) or return
        Process.kill(:STOP, pid)
        wait_until("the worker to halt") { Test::Processes.halted?(pid) }
        return go_on(pid) if @random.rand > KILLED

        @site.take(Test::Processes.clients(pid, @site.port))
        Process.kill(:KILL, pid)
        @count += 1
      rescue Errno::ESRCH, Errno::ENOENT
        nil # it has ended by itself
      end

      def go_on(pid)
        sleep(HALTED)
        Process.kill(:CONT, pid)
      end
    end
  end
end
