# frozen_string_literal: true

module Bench
  module Simulation
    # How a server hands out requests (queues), when Ruby's lock changes hands (turns), and the seconds of computing that it adds
    # to a request of its own (overhead).
    Model = Struct.new(:queues, :turns, :overhead, keyword_init: true)

    RUBYS_TURNS = Turns::Ruby.new(0.1)
    OURS = ->(calendar, workers, random) { OneQueue.new(calendar, workers, random) }
    PUMAS = ->(calendar, workers, random) { OwnQueues.new(calendar, workers, random, in_a_row: 10) }

    # Name of a server in bench/servers => its model.
    MODELS = {
      "fairlead" => Model.new(queues: OURS, turns: Turns::Slices.new(0.005, 0.001), overhead: 0.000_02),
      "fairlead-no-slices" => Model.new(queues: OURS, turns: RUBYS_TURNS, overhead: 0.000_02),
      "puma" => Model.new(queues: PUMAS, turns: RUBYS_TURNS, overhead: 0.000_1)
    }.freeze
  end
end
