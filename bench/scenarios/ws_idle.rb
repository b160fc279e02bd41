# frozen_string_literal: true

# The cost of an idle client.
Bench::Scenario.define(
  "ws-idle",
  about: "WebSockets that are subscribed to a channel and idle: memory of all processes (PSS) for each, as the difference with and without.",
  drive: Bench::Drive::IdleSockets.new,
  shapes: %w[1x1:1000 1x1:10000],
  metrics: %i[socket memory opening errors],
  plots: []
)
