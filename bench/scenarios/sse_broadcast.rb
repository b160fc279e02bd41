# frozen_string_literal: true

# Notifications: each request publishes a message to all event streams, one request after the other.
Bench::Scenario.define(
  "sse-broadcast",
  about: "200 messages of 90 bytes, each published by a POST after the response to the previous one, to 1,000 event streams.",
  drive: Bench::Drive::Broadcast.new(messages: 200, size: 90, events: true),
  shapes: %w[1x1:1000 2x1:1000],
  metrics: %i[rate spread vs_fairlead p50 p99 max cpu memory errors],
  plots: %w[rate latency]
)
