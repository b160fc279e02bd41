# frozen_string_literal: true

# Action Cable: the cost of an idle client.
Bench::Scenario.define(
  "cable-idle",
  about: "Action Cable: idle clients of a channel: memory of all processes (PSS) for each, as the difference with and without.",
  only: Bench::CableDialect::SERVERS,
  drive: Bench::Drive::IdleSockets.new,
  shapes: %w[1x3:5000],
  metrics: %i[socket memory opening errors],
  plots: []
)
