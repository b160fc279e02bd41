# frozen_string_literal: true

module Bench
  module Simulation
    # The model of a server: how it hands out requests (queues), when Ruby's lock changes hands (turns), and the
    # computing time that it adds to each request (overhead).
    Model = Struct.new(:queues, :turns, :overhead, keyword_init: true)

    # Interval of the monitor's checks: it sleeps for a millisecond. Then its first check after a slice of 5 ms.
    TICK = 0.001_06
    SLICE = 5 * TICK

    OUR_TURNS = Turns::Clock.new(SLICE)
    RUBYS_TURNS = Turns::Ruby.new(0.1)
    OURS = ->(calendar, workers, random) { OneQueue.new(calendar, workers, random) }
    PUMAS = ->(calendar, workers, random) { OwnQueues.new(calendar, workers, random, in_a_row: 10) }

    # Name of a server in bench/servers => its model.
    MODELS = {
      "fairlead" => Model.new(queues: OURS, turns: OUR_TURNS, overhead: 0.000_02),
      "fairlead-no-slices" => Model.new(queues: OURS, turns: RUBYS_TURNS, overhead: 0.000_02),
      "puma" => Model.new(queues: PUMAS, turns: RUBYS_TURNS, overhead: 0.000_1)
    }.freeze
  end
end
