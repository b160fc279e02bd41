# frozen_string_literal: true

# Downloads of 9 MB: the cost of a large response, the shares of the clients, and the latency of short requests during
# the downloads.
Bench::Scenario.define(
  "large",
  about: "A file of 9 MB, as a File body (`fairlead` and its peers), by `to_path`, by `x-sendfile`, or from a folder: the cost of " \
         "sending it, the clients' shares, and the rate of requests of 121 bytes at the same time.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/files.ru")),
  drive: Bench::Drive::Downloads.new(answer_bytes: 9_000_000, short: "/short"),
  files: { "public/large.bin" => 9_000_000 },
  ways: { app: "/file", to_path: "/to_path", sendfile: "/sendfile", public: "/large.bin" },
  shapes: %w[2x2],
  metrics: %i[rate spread throughput vs_puma vs_nginx p50 p99 shares cpu memory short short_vs_puma short_p99 beside_short errors]
)
