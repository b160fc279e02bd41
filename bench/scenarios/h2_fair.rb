# frozen_string_literal: true

# One client with many streams among clients with one each: does it get more than they do?
Bench::Scenario.define(
  "h2-fair",
  about: "Every request sleeps 200 ms, over HTTP/2: one connection has 100 streams, ten others have one each. Responses of each " \
         "connection, in equal shares of all: 1 is fair by connection, 10 and 0.1 is fair by stream.",
  app: <<~RUBY,
    run ->(_env) { sleep 0.2; [200, { "content-type" => "text/plain" }, ["waited\\n"]] }
  RUBY
  drive: Bench::Drive::Streams.new(answer_bytes: 7, streams: "100,1x10", slow: true),
  http2: :only,
  only: %w[fairlead nginx-fairlead],
  shapes: %w[1x5:11],
  hold: 0.2,
  metrics: %i[rate many_share single_share single_p50 single_p99 streams p50 p99 errors],
  plots: %w[fair latency]
)
