# frozen_string_literal: true

# Who waits when many clients connect at the same moment?
Bench::Scenario.define(
  "growth-arrivals",
  about: "n clients that connect to one process at the same moment, each with one request: the time until half of them and all are served.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::Arrivals.new, things: "clients", counts: [10, 100, 1000, 5000]),
  ways: { app: "/", public: "/short" },
  only: %w[fairlead puma nginx],
  shapes: %w[1x5:5000],
  metrics: [],
  plots: %w[growth]
)
