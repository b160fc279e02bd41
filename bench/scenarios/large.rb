# frozen_string_literal: true

# Downloads of 9 MB from a File: whether a large answer holds an application thread, and what it costs to send.
Bench::Scenario.define(
  "large",
  about: "A file of 9 MB as a File body: what it costs to send, and whether it holds an application thread.",
  app: <<~RUBY,
    PATH = File.expand_path("large.bin", __dir__)
    SIZE = File.size(PATH).to_s.freeze
    run ->(_env) { [200, { "content-type" => "application/octet-stream", "content-length" => SIZE }, File.open(PATH, "rb")] }
  RUBY
  answer_bytes: 9_000_000,
  files: { "large.bin" => 9_000_000 },
  shapes: %w[1x5 2x2],
  metrics: %i[rate spread throughput vs_puma p50 p99 p99c fairness cpu memory errors]
)
