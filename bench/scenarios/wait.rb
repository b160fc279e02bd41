# frozen_string_literal: true

# Short waits, as for a cache or a quick query: the time until another thread takes over from a blocking one.
Bench::Scenario.define(
  "wait",
  about: "Every request sleeps 1 ms: the time until another thread takes over from a blocking one.",
  app: <<~RUBY,
    run ->(_env) { sleep 0.001; [200, { "content-type" => "text/plain" }, ["waited\\n"]] }
  RUBY
  answer_bytes: 7,
  shapes: %w[1x5 2x2],
  hold: 0.001,
  slices: true,
  metrics: %i[rate spread vs_puma vs_fairlead p50 p99 p99c fairness cpu errors]
)
