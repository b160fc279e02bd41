# frozen_string_literal: true

# Does a channel or a pattern cost the others anything?
Bench::Scenario.define(
  "growth-channels",
  about: "n channels, and n patterns, that belong to 10 event streams: CPU time of a message to one of them, and of a subscription.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::Channels.new, things: "channels", counts: [*Bench::Drive::Growth::COUNTS, 100_000]),
  arguments: { "fairlead" => Bench::Growth::PATIENT["fairlead"] +
                             %w[--max-patterns 200000 --max-subscriptions 20000 --max-subscriptions-total 300000] },
  only: %w[fairlead],
  shapes: %w[1x5:10],
  metrics: [],
  plots: %w[growth]
)
