# frozen_string_literal: true

# Ten clients download 9 MB repeatedly, as fast as they can, in every way of sending a file. Each gets its share, of one
# process and of two workers, and 400 short requests per second, sent at a constant rate, do not wait for the end of a
# download.
require_relative "../check"
require_relative "support/downloads"

SCENARIO = Downloads.scenario("files", 9_000_000)
CLIENTS = 10
SINGLE = Bench::Shape.parse("1x5:#{CLIENTS}")
WORKERS = Bench::Shape.parse("2x2:#{CLIENTS}")
SHORT = Bench::Shape.parse("2x2:4")
RATE = 400
ROUNDS = 3
SECONDS = 3

def short(check, running)
  check.load(running, SHORT, path: Downloads::SHORT, seconds: SECONDS, rate: RATE)
end

def downloads(check, running, path, seconds = SECONDS)
  check.load_tool.measure(running.url(path), connections: CLIENTS, seconds: seconds)
end

# The short requests, and the concurrent downloads.
def short_beside_downloads(check, running, path)
  downloads = Thread.new { downloads(check, running, path, SECONDS + 1) }
  sleep 0.5
  [short(check, running), downloads.value]
end

def median(measurements, &value)
  Bench::Cell.median(measurements.map(&value))
end

def judge_shares(check, title, downloads)
  shares = downloads.flat_map do |round|
    mean = round.per_connection.sum.fdiv(CLIENTS)
    round.per_connection.map { |count| count / mean }
  end
  check.at_least("#{title}: downloads of the least served ÷ mean", shares.min, 0.8)
  check.at_most("#{title}: downloads of the most served ÷ mean", shares.max, 1.2)
end

def judge_delay(check, way, alone, beside, downloads)
  late, calm = [beside, alone].map { |rounds| median(rounds) { |round| round.corrected_percentile(99) if round.requests.positive? } }
  raise Bench::Error, "#{way}: no response to a short request" unless late && calm

  check.show("#{way}: p99 of short requests alone", calm, "ms")
  check.show("#{way}: p99 of short requests beside downloads", late, "ms")
  check.show("#{way}: p99 beside ÷ alone", late / calm)
  check.at_most("#{way}: p99 beside ÷ time of a download", late / median(downloads) { |round| round.percentile(50) }, 0.5)
  check.at_least("#{way}: short requests answered ÷ sent", median(beside, &:rate) / RATE, 0.95)
end

# Starts the server and measures the downloads alone; then the block gets the server.
def alone(check, server, shape)
  check.serve(SCENARIO, shape, server: server) do |running|
    path = SCENARIO.path(server)
    downloads(check, running, path, 1)
    found = Array.new(ROUNDS) { downloads(check, running, path) }
    judge_shares(check, "#{server.name} -w #{shape.workers}", found)
    check.at_most("#{server.name} -w #{shape.workers}: errors", found.sum(&:error_count), 0)
    yield running, path if block_given?
  end
end

Fairlead::Soak::Check.run("files") do |check|
  raise Bench::Error, "needs the load tool of this checkout" unless check.load_tool.is_a?(Bench::Load::Fairlead)

  Downloads.each_server(check) do |server|
    alone(check, server, SINGLE)
    alone(check, server, WORKERS) do |running, path|
      calm = Array.new(ROUNDS) { short(check, running) }
      beside, meanwhile = Array.new(ROUNDS) { short_beside_downloads(check, running, path) }.transpose
      judge_delay(check, server.name, calm, beside, meanwhile)
      check.at_most("#{server.name}: errors beside each other", [*calm, *beside, *meanwhile].sum(&:error_count), 0)
    end
  end
end
