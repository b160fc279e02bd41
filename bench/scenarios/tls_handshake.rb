# frozen_string_literal: true

# The cost of TLS handshakes, full and resumed.
Bench::Scenario.define(
  "tls-handshake",
  about: "A new connection with TLS 1.3 for every request of 121 bytes: handshakes per second and their duration, full ones with two " \
         "kinds of certificates, and resumed ones.",
  app: <<~RUBY,
    BODY = ("x" * 120 + "\\n").freeze
    run ->(_env) { [200, { "content-type" => "text/plain" }, [BODY]] }
  RUBY
  drive: Bench::Drive::Handshakes.new(answer_bytes: 121),
  tls: {
    "ECDSA P-256" => Bench::Tls.new(certificate: "ECDSA P-256"),
    "RSA 2048" => Bench::Tls.new(certificate: "RSA 2048"),
    "ECDSA P-256, resumed" => Bench::Tls.new(certificate: "ECDSA P-256", resume: true)
  },
  only: %w[fairlead puma thin nginx],
  ways: { app: "/", public: "/short" },
  shapes: %w[1x5 2x5].product(["ECDSA P-256", "RSA 2048", "ECDSA P-256, resumed"]).map { |shape, mix| "#{shape} #{mix}" },
  metrics: %i[rate spread vs_puma vs_nginx p50 p95 p99 max cpu cpu_vs_nginx memory errors],
  plots: %w[rate latency]
)
