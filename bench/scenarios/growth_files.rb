# frozen_string_literal: true

# Does a file cost more beside others?
counts = [*Bench::Drive::Growth::COUNTS, 100_000]
Bench::Scenario.define(
  "growth-files",
  about: "Requests for public files of 100 bytes on one connection: one after another of n files, in one folder and in many, and one file in a " \
         "folder with n entries.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::Files.new, things: "files", counts: counts),
  files: Bench::Growth::Files.contents(counts),
  ways: { public: "/" },
  shapes: %w[1x5:1],
  metrics: [],
  plots: %w[growth]
)
