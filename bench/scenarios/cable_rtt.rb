# frozen_string_literal: true

# Action Cable: the time from a client's command to the broadcast that its channel action makes, at every client.
Bench::Scenario.define(
  "cable-rtt",
  about: "Action Cable: 20 commands a second from 10 clients; an action broadcasts each to 250 clients. 10 s.",
  only: Bench::CableDialect::SERVERS,
  drive: Bench::Drive::Broadcast.new(messages: 200, size: 90, rate: 20, publishers: 10),
  shapes: %w[1x3:250 2x3:250],
  metrics: %i[p50 p95 p95_vs_fairlead p99 max cpu memory errors],
  plots: %w[latency]
)
