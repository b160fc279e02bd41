# frozen_string_literal: true

# Quick and slow requests at the same time: the waiting time of the quick ones.
kind = Bench::Drive::Kinds::Kind
drive = Bench::Drive::Kinds.new(
  answer_bytes: 5,
  mixes: {
    nil => [
      kind.new(name: "short", path: "/short", steps: [[:sleep, 0.005]], parts: 3),
      kind.new(name: "long", path: "/long", steps: [[:sleep, 0.3]], parts: 1)
    ]
  }
)

Bench::Scenario.define(
  "mixed",
  about: "Three of four clients send requests that sleep 5 ms, the others requests that sleep 300 ms: the waiting time of the short ones.",
  app: drive.app,
  drive: drive,
  shapes: %w[1x5:12 4x2:16],
  slices: true,
  metrics: %i[rate spread vs_puma p50 p95 p99 predicted_p99 max fairness beside_rate beside_p50 beside_p99 errors],
  plots: %w[rate fair latency prediction]
)
