# frozen_string_literal: true

module Bench
  # A prediction consists of several runs, each with other random numbers.
  module Simulation
    RUNS = 9
    # The first requests of all clients come within this time, in seconds.
    START = 0.002

    module_function

    # Name of a kind of clients => Prediction; nil if there is no model of the server. `shape` has workers and threads,
    # `kinds` is a list of Kind, `extent` an Extent.
    def predict(server, shape, kinds, extent)
      model = MODELS[server] or return

      loads = Array.new(RUNS) { |seed| run(model, shape, kinds, extent, Random.new(seed)) }
      kinds.to_h { |kind| [kind.name, Prediction.new(loads.map { |load| [load.latencies[kind.name], load.seconds] })] }
    end

    # One run; returns its Load.
    def run(model, shape, kinds, extent, random)
      calendar = Calendar.new
      load = Load.new(extent)
      server = model.queues.call(calendar, workers(calendar, model, shape, random), random)
      clients = kinds.flat_map { |kind| Array.new(kind.clients) { Client.new(calendar, kind, server, load) } }
      server.connect(clients)
      clients.shuffle(random: random).each { |client| calendar.after(random.rand * START) { client.ask } }
      load.run(calendar)
      load
    end

    def workers(calendar, model, shape, random)
      Array.new(shape.workers) { Worker.new(calendar, shape.threads, Lock.new(calendar, model.turns, random), model.overhead) }
    end
    private_class_method :run, :workers
  end
end
