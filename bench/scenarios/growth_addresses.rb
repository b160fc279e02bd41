# frozen_string_literal: true

# Does a client's address cost the others anything?
Bench::Scenario.define(
  "growth-addresses",
  about: "Clients at n addresses, one after another, each with a connection and a request: CPU time of one, and memory.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::Addresses.new, things: "addresses", counts: [*Bench::Drive::Growth::COUNTS, 100_000]),
  arguments: { "fairlead" => %w[--fair-by ip] },
  ways: { app: "/", public: "/short" },
  only: %w[fairlead nginx],
  shapes: %w[1x5:1],
  metrics: [],
  plots: %w[growth]
)
