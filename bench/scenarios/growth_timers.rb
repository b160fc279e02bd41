# frozen_string_literal: true

# Does a timer cost the others anything?
Bench::Scenario.define(
  "growth-timers",
  about: "n timers of the application: CPU time of adding, cancelling and running one.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::Timers.new, things: "timers", counts: [*Bench::Drive::Growth::COUNTS, 100_000]),
  only: %w[fairlead],
  shapes: %w[1x5:1],
  metrics: [],
  plots: %w[growth]
)
