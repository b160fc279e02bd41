# frozen_string_literal: true

# Predicts what clients of a server will see: a small discrete-event simulation of the queues of a server and of Ruby's lock.
# It knows what an application does (steps of sleeping and computing), how a server hands requests to threads, and when the
# lock changes hands. It knows nothing of sockets and HTTP, and no figure that it is to predict. Standard library only.
# docs/guides/fairness.md says what the model is, bench/METHOD.md what it leaves out.
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
