# frozen_string_literal: true

# Do timeouts of the same second cost more together, and do they hold up a client?
Bench::Scenario.define(
  "growth-timeouts",
  about: "n connections with a timeout in the same second, after a response or in a request head: CPU time of closing one, and the longest " \
         "response of another client meanwhile.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::TimeOuts.new, things: "connections with a timeout"),
  ways: { app: "/", public: "/short" },
  only: %w[fairlead nginx],
  shapes: %w[1x5:10000],
  metrics: [],
  plots: %w[growth]
)
