# frozen_string_literal: true

# `lag` over TLS: a connection cannot change its worker there; can its requests?
Bench::Scenario.define(
  "lag-tls",
  about: "Every request sleeps 200 ms, over kept connections with TLS: does a free thread, in any worker, take the client that has " \
         "waited longest?",
  app: <<~RUBY,
    run ->(_env) { sleep 0.2; [200, { "content-type" => "text/plain" }, ["waited\\n"]] }
  RUBY
  drive: Bench::Drive::SecureRequests.new(answer_bytes: 7, requests_each: 20),
  tls: { nil => Bench::Tls.new(certificate: "ECDSA P-256") },
  only: %w[fairlead fairlead-no-room fairlead-plain puma],
  shapes: %w[4x2:16],
  hold: 0.2,
  metrics: %i[rate spread vs_puma vs_plain p50 p99 p99c max fairness errors]
)
