# frozen_string_literal: true

# Predicts the latencies of a server's clients: a small discrete-event simulation of the queues of a server and of
# Ruby's lock. It knows the steps of an application (sleeping and computing), the rules by which a server hands requests
# to threads, and the moments when the lock changes hands. It knows nothing about sockets and HTTP, and uses none of the
# measured results. Standard library only. docs/guides/fairness.md describes the model, bench/METHOD.md its omissions.
module Bench
  # See Simulation.predict (bench/simulation/run.rb).
  module Simulation
  end
end

require_relative "simulation/calendar"
require_relative "simulation/turns"
require_relative "simulation/lock"
require_relative "simulation/load"
require_relative "simulation/client"
require_relative "simulation/worker"
require_relative "simulation/one_queue"
require_relative "simulation/own_queues"
require_relative "simulation/prediction"
require_relative "simulation/models"
require_relative "simulation/run"
