# frozen_string_literal: true

# Does a line of the access log cost more if there are more of them, and does a log that nobody reads hold up requests?
Bench::Scenario.define(
  "growth-log",
  about: "n requests a second on 10 connections: CPU time of one, without a log, with a line in a file, and with a log that nobody reads.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::LogLines.new, things: "requests a second"),
  ways: { app: "/", public: "/short" },
  only: %w[fairlead puma nginx],
  shapes: %w[1x5:10],
  metrics: [],
  plots: %w[growth]
)
