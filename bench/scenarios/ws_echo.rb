# frozen_string_literal: true

# The cost of a WebSocket message: in, through the app, out.
Bench::Scenario.define(
  "ws-echo",
  about: "Messages of 64 bytes that the application sends back, one at a time on each of 20 WebSockets.",
  drive: Bench::Drive::Echoes.new(size: 64),
  shapes: %w[1x1:20],
  metrics: %i[rate spread vs_fairlead p50 p99 p99c max fairness cpu memory errors]
)
