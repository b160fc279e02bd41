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

      # Returns the Generation.
      def start(number, fresh:)
        ours, theirs = Link.pair
        pid = fresh ? run_command(number, ours, theirs) : fork_spawner(number, ours, theirs)
        Generation.new(number, pid, ours)
      ensure
        theirs&.close
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
      def run_command(number, ours, theirs)
        bindings = @service.listeners.map(&:known_as)
        ours.send(:inherit, number, Native::Shared::LAYOUT, *bindings, ios: [*@shared.descriptors, *@service.listeners])
        RestartCommand.current.spawn({ Spawner::VARIABLE => theirs.fileno.to_s, **Launcher.current.desk.variables }, theirs.to_io)
      end
    end
  end
end
