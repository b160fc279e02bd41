# frozen_string_literal: true

# One process, five threads, every request sleeps 200 ms: no thread may idle while a client waits, and no client may wait
# longer than its turn. The optimum is 25 requests/s, and for 10 clients 400 ms each.
require_relative "../check"

Fairlead::Soak::Check.run("lag") do |check|
  scenario = Bench::Scenario.named("lag")
  crowded = Bench::Shape.parse("1x5", connections: 10)
  matched = Bench::Shape.parse("1x5", connections: 5)

  check.serve(scenario, crowded) do |running|
    check.load(running, crowded, requests: 20)
    found = check.load(running, crowded, requests: 200)
    check.at_least("10 connections, 200 requests: rate", found.rate, 24.5, "/s")
    check.at_most("10 connections: p99 / p50", found.percentile(99) / found.percentile(50), RUBY_VERSION < "3.2" ? 1.1 : 1.05)
    check.show("10 connections: p99", found.percentile(99), "ms")

    found = check.load(running, matched, requests: 100)
    check.at_most("5 connections: p99", found.percentile(99), 215.0, "ms")
    check.at_most("errors", found.error_count, 0)
  end
end
