# frozen_string_literal: true

# One client floods the server: what does another client lose?
Bench::Scenario.define(
  "overload-flood",
  about: "Every request sleeps 10 ms. One address sends ten times what the server can do, another one a tenth. Of the second: requests " \
         "without a good response (lost), and good responses after more than a second (late). Fairlead has `--fair-by ip`.",
  app: <<~RUBY,
    run ->(_env) { sleep 0.01; [200, { "content-type" => "text/plain" }, ["waited\\n"]] }
  RUBY
  drive: Bench::Drive::Flood.new(answer_bytes: 7, times: 10),
  arguments: { "fairlead" => [*Bench::Drive::Overload::CONTROL, "--fair-by", "ip"] },
  only: %w[fairlead puma],
  shapes: ["2x5:2020"],
  metrics: %i[capacity asked lost late good_p50 good_p99 refused beside_useful beside_refused],
  plots: []
)
