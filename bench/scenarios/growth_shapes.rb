# frozen_string_literal: true

# Does a thread or a worker cost anything that the load does not need?
shapes = lambda do |name, things, counts, shape|
  Bench::Scenario.define(
    "growth-#{name}",
    about: "The same load, 8 connections, on a server with n #{things}: CPU time of a request, and CPU time and wake-ups in a second without load.",
    app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
    drive: Bench::Drive::Growth.new(Bench::Growth::Shapes.new(&shape), things: things, counts: counts),
    arguments: Bench::Growth::PATIENT,
    ways: { app: "/", public: "/short" },
    only: %w[fairlead puma iodine nginx],
    shapes: %w[1x1:8],
    metrics: [],
    plots: %w[growth]
  )
end

shapes.call("threads", "threads", [1, 2, 4, 8, 16, 32, 64, 128], ->(count) { Bench::Shape.new(workers: 1, threads: count, connections: 8) })
shapes.call("workers", "workers", [2, 4, 8, 16, 32], ->(count) { Bench::Shape.new(workers: count, threads: 2, connections: 8) })
