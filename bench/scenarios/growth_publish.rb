# frozen_string_literal: true

# Do subscribers cost the other ones anything?
Bench::Scenario.define(
  "growth-publish",
  about: "n event streams with subscriptions: CPU time of a message to all (for each delivery), to one of n channels, to one of n " \
         "patterns, and of a subscriber that comes and goes.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::Publishing.new, things: "event streams"),
  arguments: { "fairlead" => [*Bench::Growth::PATIENT["fairlead"], "--max-patterns", "20000"] },
  only: %w[fairlead iodine],
  shapes: %w[1x5:10000],
  metrics: [],
  plots: %w[growth]
)
