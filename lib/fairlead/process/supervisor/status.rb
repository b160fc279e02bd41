# frozen_string_literal: true

module Fairlead
  class Supervisor
    # What people and programs are told about a supervisor and its workers; lib/fairlead/control shows it.
    module Status
      module_function

      # Returns a Hash: pid:, state: (:starting, :ready, :restarting or :draining), generation: its number, started_at:, workers: how
      # many there are to be, restart: nil or { kind:, state:, error:, at: }, children: a Hash for each worker.
      def of(supervisor)
        {
          pid: Process.pid, state: state(supervisor), generation: supervisor.generations&.current&.number || 0,
          started_at: supervisor.started_at, workers: supervisor.workforce&.wanted || 0,
          restart: supervisor.restarts&.last&.to_h,
          children: (supervisor.workforce&.children || []).map { |child| of_worker(supervisor, child) }
        }
      end

      def state(supervisor)
        return :draining if supervisor.stopping?
        return :starting unless supervisor.announced?

        supervisor.restarts&.last&.running? ? :restarting : :ready
      end

      def of_worker(supervisor, child)
        {
          index: child.index, slot: child.slot, pid: child.pid, generation: child.generation, booted: child.booted?, ending: child.ending?,
          started_at: child.began_at, heartbeat_age: supervisor.shared.heartbeat_age(child.slot)
        }
      end
    end
  end
end
