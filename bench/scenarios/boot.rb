# frozen_string_literal: true

# The cost of a restart with a minimal application.
Bench::Scenario.define(
  "boot",
  about: "Time from the command to the first response, with an application of one line.",
  app: <<~RUBY,
    run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello\\n"]] }
  RUBY
  drive: Bench::Drive::Starts.new,
  shapes: %w[1x5:1 2x2:1],
  metrics: %i[start starts start_vs_puma memory errors],
  plots: []
)
