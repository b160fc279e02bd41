# frozen_string_literal: true

# Four workers of two threads behave as one queue: every request sleeps 200 ms, N clients keep their connections. The optimum
# is 40 requests/s and p99 = 200 ms × N / 8, on every start, however the connections are spread over the workers. The queue
# does not slow down quick requests.
require_relative "../check"

STARTS = 10
CLIENTS = [8, 16, 32].freeze
ROUNDS = 7
REQUESTS = 320

def lag_figures(check, shape)
  Array.new(STARTS) do
    check.serve(Bench::Scenario.named("lag"), shape) do |running|
      check.load(running, shape, requests: shape.connections * 2)
      check.load(running, shape, requests: REQUESTS)
    end
  end
end

def one_queue(check, clients)
  shape = Bench::Shape.new(workers: 4, threads: 2, connections: clients)
  best = 200.0 * clients / shape.concurrency
  found = lag_figures(check, shape)
  rates = found.map(&:rate)
  tails = found.map { |measurement| measurement.percentile(99) }
  check.at_least("#{clients} clients, worst of #{STARTS} starts: rate", rates.min, 39.0, "/s")
  check.show("#{clients} clients, median of the starts: rate", Bench::Cell.median(rates), "/s")
  check.at_most("#{clients} clients, worst start: p99 / #{best.round} ms", tails.max / best, 1.075)
  check.at_most("#{clients} clients: errors", found.sum(&:error_count), 0)
end

def short_rate(check, shape, server)
  check.serve(Bench::Scenario.named("short"), shape, server: server) do |running|
    check.load(running, shape, seconds: 1)
    check.load(running, shape, seconds: 3).rate
  end
end

def price_for_quick_requests(check)
  shape = Bench::Shape.parse("2x2")
  without = Bench::Server.named("fairlead-no-room")
  ratios = Array.new(ROUNDS) { short_rate(check, shape, check.server) / short_rate(check, shape, without) }
  check.at_least("short, -w 2 -t 2: with the waiting room ÷ without, median of #{ROUNDS}", Bench::Cell.median(ratios), 0.97)
  check.show("short: least and most of the ratios", ratios.minmax.map { |ratio| ratio.round(2) }.join(" – "))
end

Fairlead::Soak::Check.run("one queue") do |check|
  CLIENTS.each { |clients| one_queue(check, clients) }
  price_for_quick_requests(check) if check.server.name == "fairlead"
end
