# frozen_string_literal: true

# Ten clients download 9 MB again and again, as fast as they can, in every way a file can be sent. Each gets its share, and
# 400 short requests a second, sent whether answers come or not, do not wait until a download ends.
require_relative "../harness"
require_relative "../harness/check"
require_relative "downloads"

SCENARIO = Downloads.scenario("files", 9_000_000)
DOWNLOADS = Bench::Shape.parse("2x2:10")
SHORT = Bench::Shape.parse("2x2:4")
RATE = 400
ROUNDS = 3
SECONDS = 3

def short(check, running)
  check.load(running, SHORT, path: Downloads::SHORT, seconds: SECONDS, rate: RATE)
end

# The short requests, and the downloads beside which they were made.
def short_beside_downloads(check, running, path)
  downloads = Thread.new do
    check.load_tool.measure(running.url(path), connections: DOWNLOADS.connections, seconds: SECONDS + 1)
  end
  sleep 0.5
  [short(check, running), downloads.value]
end

def median(measurements, &value)
  Bench::Cell.median(measurements.map(&value))
end

def judge_shares(check, way, downloads)
  shares = downloads.flat_map do |round|
    mean = round.per_connection.sum.fdiv(DOWNLOADS.connections)
    round.per_connection.map { |count| count / mean }
  end
  check.at_least("#{way}: downloads of the least served ÷ mean", shares.min, 0.8)
  check.at_most("#{way}: downloads of the most served ÷ mean", shares.max, 1.2)
end

def judge_delay(check, way, alone, beside, downloads)
  late, calm = [beside, alone].map { |rounds| median(rounds) { |round| round.corrected_percentile(99) if round.requests.positive? } }
  raise Bench::Error, "#{way}: no short request was answered" unless late && calm

  check.show("#{way}: p99 of short requests alone", calm, "ms")
  check.show("#{way}: p99 of short requests beside downloads", late, "ms")
  check.show("#{way}: p99 beside ÷ alone", late / calm)
  check.at_most("#{way}: p99 beside ÷ time of a download", late / median(downloads) { |round| round.percentile(50) }, 0.5)
  check.at_least("#{way}: short requests answered ÷ sent", median(beside, &:rate) / RATE, 0.95)
end

Bench::Check.run("files") do |check|
  raise Bench::Error, "needs the load tool of this checkout" unless check.load_tool.is_a?(Bench::Load::Fairlead)

  Downloads.each_server(check) do |server|
    check.serve(SCENARIO, DOWNLOADS, server: server) do |running|
      path = SCENARIO.path(server)
      check.load(running, DOWNLOADS, path: path, seconds: 1)
      alone = Array.new(ROUNDS) { check.load_tool.measure(running.url(path), connections: DOWNLOADS.connections, seconds: SECONDS) }
      judge_shares(check, server.name, alone)
      calm = Array.new(ROUNDS) { short(check, running) }
      beside, downloads = Array.new(ROUNDS) { short_beside_downloads(check, running, path) }.transpose
      judge_delay(check, server.name, calm, beside, downloads)
      check.at_most("#{server.name}: errors", [*alone, *calm, *beside, *downloads].sum(&:error_count), 0)
    end
  end
end
