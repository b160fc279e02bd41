# frozen_string_literal: true

# Action Cable: the time until the last client of a stream has a broadcast. The next broadcast comes when the last one
# is long over, so nothing waits behind another broadcast unless the server takes longer.
Bench::Scenario.define(
  "cable-broadcast",
  about: "Action Cable: a request broadcasts 90 bytes to 5,000 clients of one stream, six times, every 2 s.",
  only: Bench::CableDialect::SERVERS,
  drive: Bench::Drive::Broadcast.new(messages: 6, size: 90, rate: 0.5, by: :post),
  shapes: %w[1x3:5000 2x3:5000],
  metrics: %i[last last_vs_fairlead p50 cpu memory errors],
  plots: []
)
