# frozen_string_literal: true

# Do statistics cost more with more connections?
Bench::Scenario.define(
  "growth-control",
  about: "Commands of the control server, with n idle connections in two workers: CPU time of all processes for one.",
  app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
  drive: Bench::Drive::Growth.new(Bench::Growth::Control.new, things: "idle connections"),
  arguments: { "fairlead" => [*Bench::Growth::PATIENT["fairlead"], *Bench::Growth::Control::ARGUMENTS] },
  only: %w[fairlead],
  shapes: %w[2x5:10000],
  metrics: [],
  plots: %w[growth]
)
