# frozen_string_literal: true

# Long waits, as for another service: are clients served in the order of arrival, by any free thread?
Bench::Scenario.define(
  "lag",
  about: "Every request sleeps 200 ms: does a free thread, in any worker, take the client that has waited longest?",
  app: <<~RUBY,
    run ->(_env) { sleep 0.2; [200, { "content-type" => "text/plain" }, ["waited\\n"]] }
  RUBY
  answer_bytes: 7,
  shapes: %w[1x5 2x2 4x2:16],
  hold: 0.2,
  steps: [[:sleep, 0.2]],
  slices: true,
  requests_each: 20,
  metrics: %i[rate spread vs_puma vs_fairlead p50 p99 predicted_p99 p99c max fairness errors],
  plots: %w[rate fair latency prediction summary],
  headline: { title: "more clients than threads", text: "every request sleeps 200 ms", percentiles: [50, 99] }
)
