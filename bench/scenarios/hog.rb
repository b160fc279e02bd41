# frozen_string_literal: true

# CPU-bound requests beside requests that wait a few times, as for a database: the second kind's waiting time for Ruby's
# lock.
kind = Bench::Drive::Kinds::Kind
computing = ->(parts) { kind.new(name: "computing", path: "/computing", steps: [[:compute, 0.15]], parts: parts) }
drive = Bench::Drive::Kinds.new(
  answer_bytes: 5,
  mixes: {
    "4 × (sleep 2 ms, compute 0.5 ms)" => [
      kind.new(name: "waiting", path: "/waiting", steps: [[:sleep, 0.002], [:compute, 0.0005]] * 4, parts: 4), computing.call(1)
    ],
    "3 × (compute 1 ms, sleep 3 ms)" => [
      kind.new(name: "waiting", path: "/working", steps: [[:compute, 0.001], [:sleep, 0.003]] * 3, parts: 4), computing.call(1)
    ]
  }
)

Bench::Scenario.define(
  "hog",
  about: "One of five clients sends requests that compute 150 ms, the others send requests that wait a few times and compute " \
         "little: the time that these wait for Ruby's lock.",
  app: drive.app,
  drive: drive,
  shapes: ["1x5:5 4 × (sleep 2 ms, compute 0.5 ms)", "1x5:10 3 × (compute 1 ms, sleep 3 ms)"],
  slices: true,
  metrics: %i[rate spread vs_puma p50 p95 predicted_p95 p95_vs_puma p99 max beside_rate beside_vs_puma beside_p50 beside_p99 errors],
  plots: %w[rate latency prediction summary],
  headline: { title: "beside a CPU-bound client", text: "the responses to the clients that mostly wait", percentiles: [50, 95] }
)
