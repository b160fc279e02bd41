# frozen_string_literal: true

require_relative "site"

module Fairlead
  module Soak
    # Kills workers with SIGKILL now and then. Which connections that takes from their clients is found out just before, while
    # the worker is halted; every other connection has to be served as if nothing had happened, those in the waiting room too.
    # Some workers are only halted for a while, which may cost nothing but time.
    class Killer
      # Which part of them is killed, and for how many seconds the others are halted.
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

      # Kills for as long as the block runs.
      def run
        stop = Queue.new
        thread = Thread.new { kill until wait(stop) }
        yield
      ensure
        stop&.push(true)
        thread&.value
      end

      private

      # Whether it is time to end rather than to kill.
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
