# frozen_string_literal: true

module Fairlead
  class Supervisor
    # Starts spawners. The first one is forked, which is fast. Others are programs of their own (the same command, run again in
    # the same folder), so that nothing of the old code, of its gems or of its configuration is in them.
    class Spawning
      # The block is called in a forked spawner.
      def initialize(service, shared, &after_fork)
        @service = service
        @shared = shared
        @after_fork = after_fork
      end

      # Returns the Generation. +replaces+: whether the spawner of this number was lost. The next one offers the certificates of this
      # process, so that none has to be in its file.
      def start(number, fresh:, replaces: false)
        ours, theirs = Link.pair
        kept = hand_over if replaces
        pid = fresh ? run_command(number, ours, theirs, kept) : fork_spawner(number, ours, theirs)
        Generation.new(number, pid, ours)
      ensure
        [theirs, kept].each { |io| io&.close }
      end

      private

      def fork_spawner(number, ours, theirs)
        fork do
          @after_fork.call
          ours.close
          exit(Role.run(Spawner.new(@service, theirs, @shared, number)))
        end
      end

      # The program finds its link by the environment, and everything else on it.
      def run_command(number, ours, theirs, kept)
        bindings = @service.listeners.map(&:known_as)
        ours.send(:inherit, number, Native::Shared::LAYOUT, *bindings, ios: [*@shared.descriptors, *@service.listeners, kept].compact)
        RestartCommand.current.spawn({ Spawner::VARIABLE => theirs.fileno.to_s, **Launcher.current.desk.variables }, theirs.to_io)
      end

      # The end of a pipe with what the Offers of this process keep. A thread writes it, for a revocation list is larger than a pipe.
      def hand_over
        reader, writer = IO.pipe
        kept = @service.tls.kept
        Thread.new { write(kept, writer) }
        reader
      rescue ThreadError # then it is empty
        writer.close
        reader
      end

      def write(kept, pipe)
        Marshal.dump(kept, pipe)
      rescue SystemCallError
        nil # the spawner has ended
      ensure
        pipe.close
      end
    end
  end
end
