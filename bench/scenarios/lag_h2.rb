# frozen_string_literal: true

# `lag` over HTTP/2: a stream cannot change its worker; can its request?
Bench::Scenario.define(
  "lag-h2",
  about: "Every request sleeps 200 ms, over HTTP/2 with 4 streams on each connection: does a free thread, in any worker, " \
         "take the request that has waited longest?",
  app: <<~RUBY,
    run ->(_env) { sleep 0.2; [200, { "content-type" => "text/plain" }, ["waited\\n"]] }
  RUBY
  drive: Bench::Drive::Streams.new(answer_bytes: 7, streams: 4, slow: true),
  http2: :only,
  only: %w[fairlead fairlead-no-room fairlead-http1],
  shapes: %w[4x2:4 4x2:2],
  hold: 0.2,
  metrics: %i[rate spread vs_http1 p50 p99 p99c max fairness streams errors],
  plots: %w[latency]
)
