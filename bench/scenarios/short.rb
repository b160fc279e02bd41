# frozen_string_literal: true

# The server's own share of the machine: a response of 121 bytes that costs the app nothing.
Bench::Scenario.define(
  "short",
  about: "A constant response of 121 bytes, text/plain: the cost of the server itself.",
  app: <<~RUBY,
    BODY = ("x" * 120 + "\\n").freeze
    run ->(_env) { [200, { "content-type" => "text/plain" }, [BODY]] }
  RUBY
  answer_bytes: 121,
  shapes: %w[1x1 1x5 2x2],
  slices: true,
  metrics: %i[rate spread vs_puma vs_fairlead p50 p99 p99c fairness cpu memory errors],
  fixed_answer: true
)
