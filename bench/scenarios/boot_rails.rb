# frozen_string_literal: true

# The cost of a restart with a Rails application.
Bench::Scenario.define(
  "boot-rails",
  about: "Time from the command to the first response, with a small Rails application, eager loading on.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/rails.ru")),
  drive: Bench::Drive::Starts.new,
  gem: "rails",
  shapes: %w[1x5:1 2x2:1],
  metrics: %i[start starts start_vs_puma memory errors],
  plots: []
)
