# frozen_string_literal: true

require_relative "site"

module Fairlead
  module Soak
    # Disturbs a server now and then while clients use it: kills or halts one of its processes, restarts it, changes the number of
    # workers, rotates its logs. Records the connections that a kill takes from their clients right before, while the process is
    # stopped; every other connection must be served as usual, even if its request is in the waiting room.
    class Disturber
      # Acts on a server with workers, each as often as it occurs here; acts on a server without workers; kills alone.
      WORKERS = %i[kill kill kill halt phased phased hot refork more fewer kill_spawner rotate].freeze
      ALONE = %i[kill halt halt hot phased rotate].freeze
      KILLS = %i[kill kill kill halt].freeze

      SIGNALS = { phased: :USR1, hot: :USR2, refork: :URG, more: :TTIN, fewer: :TTOU }.freeze

      # Seconds for which a halted process stands still: too short for any timeout, so it may only cost time.
      HALTED = 0.7

      # Workers more than configured, at most.
      MORE = 2

      include Test::Waiting

      # Number of acts, by name.
      attr_reader :acts

      # +names+: the acts. +pause+: a range of seconds between two of them.
      def initialize(site, random, names, pause)
        @site = site
        @random = random
        @names = names
        @pause = pause
        @acts = Hash.new(0)
      end

      # Disturbs while the block runs.
      def run
        stop = Queue.new
        thread = Thread.new { act until wait(stop) }
        yield
      ensure
        stop&.push(true)
        thread&.value
      end

      # Changes the number of workers back to the configured one.
      def settle
        wait_until("the configured number of workers", seconds: Site::PATIENCE) do
          more = @site.status&.fetch("workers", 0)
          next true if more == @site.workers

          @site.server.signal(more > @site.workers ? :TTOU : :TTIN) if more
          nil.tap { sleep(0.3) }
        end
      end

      def to_s = @acts.map { |name, count| "#{count} × #{name}" }.join(", ")

      private

      # Returns true if it is time to end, false if it is time for an act.
      def wait(stop)
        finish = monotonic + @random.rand(@pause)
        sleep(0.05) while stop.empty? && monotonic < finish
        !stop.empty? || !@site.running?
      end

      def act
        name = @names.sample(random: @random)
        return if %i[more fewer].include?(name) && !permitted?(name)

        @acts[name] += 1
        perform(name)
      rescue Errno::ESRCH, Errno::ENOENT
        nil # it has ended by itself
      end

      def permitted?(name)
        more = (@site.status || {}).fetch("workers", @site.workers) - @site.workers
        name == :more ? more < MORE : more.positive?
      end

      def perform(name)
        case name
        when :kill then kill(@site.serving.sample(random: @random))
        when :kill_spawner then kill(@site.server.spawner_pid)
        when :halt then halt(@site.serving.sample(random: @random))
        when :rotate then @site.rotate
        else @site.restarts { @site.server.signal(SIGNALS.fetch(name)) }
        end
      end

      def kill(pid)
        return unless pid && stop(pid)

        @site.take(Test::Processes.clients(pid, @site.port), pid)
        Process.kill(:KILL, pid)
      end

      def halt(pid)
        return unless pid && stop(pid)

        sleep(HALTED)
        Process.kill(:CONT, pid)
      end

      def stop(pid)
        Process.kill(:STOP, pid)
        wait_until("the process to halt") { Test::Processes.halted?(pid) }
      end
    end
  end
end
