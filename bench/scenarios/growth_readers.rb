# frozen_string_literal: true

# Does a client that reads nothing cost the others anything? Each may have a temporary file, so 10,000 need more than 20,000 descriptors.
Bench::Scenario.define(
  "growth-readers",
  about: "n clients that read nothing of a response of 300,000 bytes, beside one active client: CPU time of its requests and of theirs.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::SlowReaders.new, things: "slow readers", counts: [10, 100, 1000, 5000]),
  arguments: { "fairlead" => Bench::Growth::PATIENT["fairlead"] +
                             %w[--write-timeout 600 --write-min-rate 0 --response-memory-bytes 16k --response-disk-total-bytes 8g] },
  files: { "public#{Bench::Growth::SlowReaders::PATH}" => Bench::Growth::SlowReaders::BYTES },
  ways: { app: "/", public: "/short" },
  only: %w[fairlead nginx],
  shapes: %w[1x5:10000],
  metrics: [],
  plots: %w[growth]
)
