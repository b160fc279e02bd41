# frozen_string_literal: true

# `short` over HTTP/2: the cost of frames, with TLS and without.
Bench::Scenario.define(
  "h2",
  about: "A constant response of 121 bytes over HTTP/2, 32 streams on one connection, in cleartext and with TLS 1.3; beside it 32 " \
         "connections with HTTP/1.1.",
  app: <<~RUBY,
    BODY = ("x" * 120 + "\\n").freeze
    run ->(_env) { [200, { "content-type" => "text/plain" }, [BODY]] }
  RUBY
  drive: Bench::Drive::Streams.new(answer_bytes: 121, streams: 32),
  tls: { "cleartext" => nil, "TLS" => Bench::Tls.new(certificate: "ECDSA P-256") },
  http2: :only,
  only: %w[fairlead fairlead-http1 nginx nginx-fairlead],
  ways: { app: "/", public: "/short" },
  shapes: %w[1x5:1 2x2:1].product(%w[cleartext TLS]).map { |shape, mix| "#{shape} #{mix}" },
  metrics: %i[rate spread vs_http1 vs_nginx p50 p99 p99c streams cpu memory errors],
  plots: %w[rate latency]
)
