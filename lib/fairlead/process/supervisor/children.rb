# frozen_string_literal: true

module Fairlead
  class Supervisor
    # A worker as its supervisor sees it. A spawner forks it, so its process id comes with its first message.
    #
    #   forking ──forked──▶ booting ──booted──▶ serving ──terminate──▶ ending ──KILL at kill_at──▶ reaped
    #
    # index: its number among the workers; one that replaces it has the same. slot: its place in what the workers share;
    # while it is being replaced, the two have different ones.
    class Child
      # What to send to a worker that has no loop yet: it is loading the application.
      SIGNALS = { drain: "TERM", end: "TERM", stop: "QUIT" }.freeze

      attr_reader :pid, :index, :slot, :generation, :started_at, :began_at, :kill_at, :link

      # +link+: our end. +generation+: its number. +began_at+: a Time, for people.
      def initialize(index:, slot:, generation:, link:, now:, pid: nil, booted: false, began_at: Time.now)
        @index = index
        @slot = slot
        @generation = generation
        @link = link
        @started_at = now
        @pid = pid
        @booted = booted
        @began_at = began_at
        @ending = @unfit = false
        @kill_at = @signal = @promoted_to = nil
      end

      def booted? = @booted
      def ending? = @ending

      # Whether it is replaced because it does not work.
      def unfit? = @unfit

      # The generation whose spawner it is to become; nil for most.
      attr_reader :promoted_to

      def booted!
        @booted = true
      end

      def forked(pid)
        @pid = pid
        signal(@signal) if @signal
      end

      # Asks it to end, because it does not work.
      def give_up(kill_at)
        @unfit = true
        terminate(kill_at)
      end

      # Asks it to stop serving and to become the spawner of generation +number+, with these listeners.
      def promote(number, listeners, kill_at)
        @promoted_to = number
        @ending = true
        @kill_at = kill_at
        link.send(:promote, number, ios: listeners.to_a)
      end

      # Asks it to end; the watchdog kills it at +kill_at+, or earlier if it has been asked before. +how+: :drain (others go on),
      # :end (the server ends, after so many seconds) or :stop.
      def terminate(kill_at, how = :drain, *details)
        @ending = true
        @kill_at = [@kill_at, kill_at].compact.min
        signal(SIGNALS.fetch(how)) unless link.send(how, *details) && booted?
      end

      def kill
        @kill_at = nil
        signal("KILL")
      end

      # A process keeps its id until it is reaped, so this never reaches another process.
      def signal(name)
        @signal = name
        Process.kill(name, pid) if pid
      rescue Errno::ESRCH
        nil
      end
    end

    # The current workers.
    class Children
      include Enumerable

      def initialize
        @by_slot = {}
      end

      def each(&block) = @by_slot.values.each(&block)

      def empty? = @by_slot.empty?

      def size = @by_slot.size

      # Those with that index: during a replacement there are two.
      def of(index) = select { |child| child.index == index }

      # Whether there is one for that index that is not about to end, or that a copy of it is going to replace.
      def any_for?(index) = of(index).any? { |child| !child.ending? || child.promoted_to }

      def add(child)
        @by_slot[child.slot] = child
      end

      def remove(child)
        @by_slot.delete(child.slot)
      end

      # A slot without a worker, if possible the one of that number; nil if there are +slots+ workers.
      def free_slot(preferred, slots) = [preferred, *(0...slots)].find { |slot| !@by_slot.key?(slot) }

      # Removes the workers that have ended and returns [[child, Process::Status], …]. Waits for each by its id, because other
      # code may have child processes of its own in the supervisor.
      def reap
        filter_map do |child|
          status = Reaper.status(child.pid, child.link)
          next unless status

          remove(child)
          [child, status]
        end
      end
    end
  end
end
