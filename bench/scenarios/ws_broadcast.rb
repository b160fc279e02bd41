# frozen_string_literal: true

# A chat room: speed, completeness and order of messages from one to all.
Bench::Scenario.define(
  "ws-broadcast",
  about: "200 messages of 90 bytes from one WebSocket to 1,000 others, as fast as they can be published.",
  drive: Bench::Drive::Broadcast.new(messages: 200, size: 90),
  shapes: %w[1x1:1000 2x1:1000],
  metrics: %i[rate spread vs_cable vs_fairlead p50 p99 max cpu memory errors],
  plots: %w[rate latency]
)
