# frozen_string_literal: true

# Does a waiting request cost the others anything?
waiting = lambda do |name, requests, setup, shape: "1x5:10000", arguments: [], only: %w[fairlead]|
  Bench::Scenario.define(
    "growth-waiting-#{name}",
    about: "n #{requests} that wait for a thread; each then takes 1 ms. CPU time of one that joins them or leaves, and of serving them.",
    app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
    drive: Bench::Drive::Growth.new(setup, things: requests),
    arguments: { "fairlead" => Bench::Growth::PATIENT["fairlead"] + arguments, "fairlead-no-room" => Bench::Growth::PATIENT["fairlead"] },
    only: only,
    shapes: [shape],
    metrics: [],
    plots: %w[growth]
  )
end

waiting.call("fifo", "requests", Bench::Growth::Waiting.new, only: %w[fairlead puma iodine])
waiting.call("fair", "requests of as many clients, with `fair_by`", Bench::Growth::Waiting.new(clients: true), arguments: %w[--fair-by x-client])
waiting.call("room", "requests, with a waiting room", Bench::Growth::Waiting.new, shape: "2x5:10000", only: %w[fairlead fairlead-no-room])
waiting.call("streams", "requests for event streams over HTTP/2, which cannot go to the waiting room", Bench::Growth::Waiting.new(http2: true),
             shape: "2x5:10000", only: %w[fairlead fairlead-no-room])
