# frozen_string_literal: true

# The cost of an idle client.
Bench::Scenario.define(
  "ws-idle",
  about: "WebSockets that are subscribed to a channel and idle: memory of all processes (PSS) with them less without them, for each.",
  drive: Bench::Drive::IdleSockets.new,
  shapes: %w[1x1:1000 1x1:10000],
  metrics: %i[socket memory opening errors],
  plots: []
)
