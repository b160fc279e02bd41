# frozen_string_literal: true

# Does a stream cost the others of its connection anything?
Bench::Scenario.define(
  "growth-streams",
  about: "n streams at a time on one connection of HTTP/2: CPU time of a request.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::Streams.new, things: "streams", counts: [1, 10, 100, 1000]),
  arguments: { "fairlead" => ["--http2-streams", Bench::Growth::Streams::MOST.to_s] },
  ways: { app: "/", public: "/short" },
  only: %w[fairlead nginx],
  http2: :only,
  shapes: %w[1x5:1],
  metrics: [],
  plots: %w[growth]
)
