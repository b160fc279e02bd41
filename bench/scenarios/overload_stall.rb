# frozen_string_literal: true

# The end of a stall: how long do the clients that still wait have to wait for the requests of others that have left?
stall = Bench::Drive::Stall
Bench::Scenario.define(
  "overload-stall",
  about: "All threads stall. Meanwhile 5,000 requests come, and all clients but the last 100 leave. The time from the end of the stall to " \
         "the first useful response. A request takes 10 ms.",
  app: <<~RUBY,
    run lambda { |_env|
      File.write("#{stall::HELD}", "x", mode: "a") if File.exist?("#{stall::SWITCH}")
      sleep 0.001 while File.exist?("#{stall::SWITCH}")
      sleep 0.01
      [200, { "content-type" => "text/plain" }, ["waited\\n"]]
    }
  RUBY
  drive: stall.new(queued: 5_000, staying: 100, times: 20.0 / 3),
  only: %w[fairlead puma],
  shapes: ["2x5:5000 #{stall::RESET}", "2x5:5000 #{stall::CLOSE}"],
  metrics: %i[stall_queued stall_first stall_served stall_refused],
  plots: []
)
