# frozen_string_literal: true

# More requests than the server can do: does it still do useful work, and does it refuse nothing that it could do?
Bench::Scenario.define(
  "overload",
  about: "Every request sleeps 10 ms. Requests come on a fixed schedule, at a multiple of the rate that the server can do (its capacity, " \
         "measured before). Useful: a good response within a second from the moment when the request was due.",
  app: <<~RUBY,
    run ->(_env) { sleep 0.01; [200, { "content-type" => "text/plain" }, ["waited\\n"]] }
  RUBY
  drive: Bench::Drive::Overload.new(answer_bytes: 7, times: 20),
  arguments: { "fairlead" => Bench::Drive::Overload::CONTROL },
  only: %w[fairlead puma],
  shapes: ["2x5:3000 3 × capacity", "2x5:3000 0.9 × capacity"],
  metrics: %i[capacity useful good_p50 good_p99 refused refused_p99 failed],
  plots: []
)
