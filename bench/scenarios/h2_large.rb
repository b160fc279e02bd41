# frozen_string_literal: true

# Downloads of 9 MB over HTTP/2: the cost of frames and flow control, when the kernel cannot send a file by itself.
Bench::Scenario.define(
  "h2-large",
  about: "A file of 9 MB over HTTP/2, 4 connections with 2 streams each, in cleartext and with TLS 1.3: as a File body (`fairlead`, and " \
         "with HTTP/1.1 on 8 connections) or from a folder.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/files.ru")),
  drive: Bench::Drive::Streams.new(answer_bytes: 9_000_000, streams: 2),
  tls: { "cleartext" => nil, "TLS" => Bench::Tls.new(certificate: "ECDSA P-256") },
  http2: :only,
  only: %w[fairlead fairlead-http1 fairlead-public nginx],
  files: { "public/large.bin" => 9_000_000 },
  ways: { app: "/file", public: "/large.bin" },
  shapes: ["2x2:4 cleartext", "2x2:4 TLS"],
  metrics: %i[rate spread throughput vs_http1 vs_nginx p50 p99 shares streams cpu memory errors],
  plots: %w[rate latency]
)
