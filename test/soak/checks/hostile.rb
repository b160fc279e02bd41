# frozen_string_literal: true

# 2,000 clients that trickle a request head, 200 that trickle a body, 200 that never read a large answer. Meanwhile
# well-behaved clients are served nearly as fast as without them, memory stays small, and every slow client is sent away
# by its own time-out: 408 for heads and bodies (RFC 9110 §15.5.9), a cut connection for those who do not read.
require_relative "../check"
require "json"
require "open3"

HEADS = 2_000
BODIES = 200
READERS = 200
TIME_OUT = 6
MEASUREMENTS = 4

# How much later than its time-out a connection may end: a second until the attacker looks, a second for the server.
GRACE = 2.5

SCENARIO = Bench::Scenario.new(
  "hostile",
  about: "A short answer at / and 9 MB at /large.",
  app: <<~RUBY,
    PATH = File.expand_path("large.bin", __dir__)
    SIZE = File.size(PATH).to_s.freeze
    BODY = ("x" * 120 + "\\n").freeze
    run(lambda do |env|
      next [200, { "content-type" => "text/plain" }, [BODY]] unless env["PATH_INFO"] == "/large"

      [200, { "content-type" => "application/octet-stream", "content-length" => SIZE }, File.open(PATH, "rb")]
    end)
  RUBY
  answer_bytes: 121,
  files: { "large.bin" => 9_000_000 },
  shapes: [],
  metrics: []
)

# Yields while the attackers are at work and returns what became of them.
def under_attack(running)
  command = [RbConfig.ruby, File.join(__dir__, "support/attackers.rb"), running.port, HEADS, BODIES, READERS].map(&:to_s)
  Open3.popen2(*command, rlimit_nofile: Process.getrlimit(:NOFILE).last) do |input, output, _process|
    raise Bench::Error, "the attackers could not connect" unless output.gets == "ready\n"

    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    left = started + TIME_OUT + GRACE - Process.clock_gettime(Process::CLOCK_MONOTONIC)
    sleep left if left.positive?
    left_over = socket_memory
    input.close
    JSON.parse(output.read).merge("socket_memory" => left_over)
  end
end

# Runs the block and returns the most memory the server had meanwhile, looked at twice a second.
def peak_memory(running)
  most = running.group.memory_kib
  looking = true
  watcher = Thread.new do
    while looking
      most = [most, running.group.memory_kib].compact.max
      sleep 0.5
    end
  end
  yield
  most
ensure
  looking = false
  watcher&.join
end

# Rate and CPU time per answer, medians.
def service(check, running, shape)
  found = Array.new(MEASUREMENTS) do
    before = running.group.cpu_seconds
    measurement = check.load(running, shape, seconds: 2)
    measurement.cpu_us = (running.group.cpu_seconds - before) * 1e6 / measurement.requests if before
    measurement
  end
  { rate: Bench::Cell.median(found.map(&:rate)), cpu: Bench::Cell.median(found.map(&:cpu_us)) }
end

# What the kernel holds for all sockets of the machine, in MiB.
def socket_memory
  File.read("/proc/net/sockstat")[/^TCP:.* mem (\d+)/, 1].to_i * Etc.sysconf(Etc::SC_PAGESIZE) / 1_048_576.0
rescue Errno::ENOENT
  nil
end

def show_endings(check, kind, endings)
  check.show("#{kind}: how they ended", endings.map { |how, count| "#{how} × #{count}" }.join(", "))
end

def judge_slow(check, kind, found)
  endings = found["endings"]
  show_endings(check, kind, endings)
  check.at_least("#{kind}: share answered 408", endings.fetch("408", 0).fdiv([endings.values.sum, 1].max), 1.0)
  check.at_least("#{kind}: shortest life", found["shortest"] || 0.0, TIME_OUT - 1.0, "s")
  check.at_most("#{kind}: longest life", found["longest"], TIME_OUT + GRACE, "s")
end

def compare(check, calm, stormy)
  check.show("undisturbed", calm[:rate], "/s")
  check.show("meanwhile", stormy[:rate], "/s")
  check.at_least("meanwhile ÷ undisturbed", stormy[:rate] / calm[:rate], 0.8)
  return unless calm[:cpu]

  check.show("CPU time per answer, undisturbed and meanwhile", "#{calm[:cpu].round(1)} and #{stormy[:cpu].round(1)}", "µs")
end

Fairlead::Soak::Check.run("hostile clients") do |check|
  shape = Bench::Shape.parse("1x5")
  limits = ["--head-timeout", "--body-timeout", "--write-timeout"].flat_map { |flag| [flag, TIME_OUT.to_s] }
  check.serve(SCENARIO, shape, options: limits) do |running|
    check.load(running, shape, seconds: 1)
    calm = service(check, running, shape)
    before = running.group.memory_kib
    stormy = nil
    became = nil
    most = peak_memory(running) { became = under_attack(running) { stormy = service(check, running, shape) } }

    compare(check, calm, stormy)
    if before && most
      check.show("memory (PSS) before", before / 1024.0, "MiB")
      check.at_most("memory added per hostile connection", (most - before).fdiv(HEADS + BODIES + READERS), 32.0, "KiB")
    end
    judge_slow(check, "heads", became["heads"])
    judge_slow(check, "bodies", became["bodies"])
    show_endings(check, "readers", became["readers"]["endings"])
    check.at_most("memory the kernel still holds for sockets", became["socket_memory"], 100.0, "MiB") if became["socket_memory"]
    check.at_least("readers: cut off", became["readers"]["endings"].values_at("closed", "reset").compact.sum, READERS)
  end
end
