# frozen_string_literal: true

# The cost of TLS after the handshake: `short`, over TLS.
Bench::Scenario.define(
  "tls",
  about: "A constant response of 121 bytes over kept connections with TLS 1.3 (AES-256-GCM): the cost of TLS for a request, and the " \
         "memory of each of 1,000 idle connections.",
  app: <<~RUBY,
    BODY = ("x" * 120 + "\\n").freeze
    run ->(_env) { [200, { "content-type" => "text/plain" }, [BODY]] }
  RUBY
  drive: Bench::Drive::SecureRequests.new(answer_bytes: 121, idle: true),
  tls: { nil => Bench::Tls.new(certificate: "ECDSA P-256") },
  only: %w[fairlead fairlead-plain puma thin nginx],
  ways: { app: "/", public: "/short" },
  shapes: %w[1x1 1x5 2x2],
  metrics: %i[rate spread vs_puma vs_nginx vs_plain p50 p99 p99c fairness cpu idle_connection memory errors]
)
