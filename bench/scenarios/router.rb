# frozen_string_literal: true

# Servers behind a router that chooses one at random, as on hosting platforms.
routed = Bench::Drive::Routed

Bench::Scenario.define(
  "router",
  about: "Every request sleeps 200 ms; 30 come each second, even if responses are late, through a router that forwards each to one of two " \
         "servers at random: the clients' waiting time. `fairlead` gets HTTP/2 from the router, the others HTTP/1.1.",
  app: <<~RUBY,
    run ->(_env) { sleep 0.2; [200, { "content-type" => "text/plain" }, ["waited\\n"]] }
  RUBY
  drive: routed.new(answer_bytes: 7, rate: 30, times: 5),
  http2: :where_spoken,
  only: %w[fairlead fairlead-http1 puma],
  shapes: [routed::KEPT, routed::NEW].map { |mix| "1x5 #{mix}" },
  metrics: %i[rate p50c p95c p99c max errors],
  plots: %w[latency]
)
