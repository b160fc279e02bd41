# frozen_string_literal: true

module Bench
  module Growth
    # A restart of the workers, and the end of the server, with n idle connections: the time, the CPU time in all, the highest memory, and
    # the connections that the restart closes.
    class Endings
      # Signals that replace workers without closing the listener.
      RESTARTS = Hash.new(:USR1).merge("nginx" => :HUP).freeze
      SECONDS = 120
      SAMPLE = 0.05

      # +kind+: a kind of clients, see Clients.
      def initialize(kind)
        @kind = kind
      end

      def figures(target, count)
        target.running.with_another do |running|
          mine = target.dup.tap { |one| one.running = running }
          clients = Clients.open(count) { Clients.public_send(@kind, mine) }
          Cost.new(running.group)
          found = restart(running)
          closed = clients.count { |client| !client.open? }
          found.merge("connections closed by a restart, %" => closed * 100.0 / count).merge(stop(running))
        ensure
          clients&.each(&:close)
        end
      end

      private

      def restart(running)
        group = running.group
        old = group.workers
        before = group.cpu_seconds
        seconds, peak = watch(group) do
          running.signal(RESTARTS[running.server.name])
          wait("its workers are still the old ones") { (group.workers & old).empty? && running.whole? }
        end
        Cost.new(group)
        { "restart of the workers, s" => seconds, "CPU of a restart, µs" => (group.cpu_seconds - before) * 1e6,
          "highest memory in a restart, MiB" => peak / 1024.0 }
      end

      # The CPU time of ended processes is known once they have been waited for.
      def stop(running)
        before = running.group.cpu_seconds + ended_cpu_seconds
        seconds, peak = watch(running.group) do
          running.signal(:TERM)
          raise Error, "it did not end within #{SECONDS} s" unless running.wait_for_end(SECONDS)
        end
        { "TERM, s" => seconds, "CPU of a TERM, µs" => (ended_cpu_seconds - before) * 1e6, "highest memory in a TERM, MiB" => peak / 1024.0 }
      end

      def ended_cpu_seconds = Process.times.then { |times| times.cutime + times.cstime }

      # The seconds that the block takes, and the highest memory in KiB meanwhile.
      def watch(group)
        started = now
        peak = group.memory_kib.to_i
        done = false
        sampler = Thread.new do
          until done
            peak = [peak, group.memory_kib.to_i].max
            sleep SAMPLE
          end
        end
        yield
        [now - started, peak]
      ensure
        done = true
        sampler&.join
      end

      def wait(reason)
        deadline = now + SECONDS
        until yield
          raise Error, reason if now > deadline

          sleep 0.02
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
