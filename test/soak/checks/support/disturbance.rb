# frozen_string_literal: true

# Code shared by the checks with hostile clients: runs these beside well-behaved clients, and measures both.
require "json"
require "open3"
require_relative "../../check"

MEASUREMENTS = 4

# Longest time from a timeout to the end of its connection: a second until the attacker checks, a second for the server.
GRACE = 2.5

# Yields while the attackers are at work, for at least `seconds`, and returns their results. `program`: a file in this
# folder; `numbers`: its arguments.
def under_attack(running, program, *numbers, seconds:)
  command = [RbConfig.ruby, File.join(__dir__, program), running.port, *numbers].map(&:to_s)
  Open3.popen2(*command, rlimit_nofile: Process.getrlimit(:NOFILE).last) do |input, output, _process|
    raise Bench::Error, "the attackers could not connect" unless output.gets == "ready\n"

    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    left = started + seconds - Process.clock_gettime(Process::CLOCK_MONOTONIC)
    sleep left if left.positive?
    left_over = socket_memory
    input.close
    JSON.parse(output.read).merge("socket_memory" => left_over)
  end
end

# Runs the block and returns the server's peak of memory, measured twice per second.
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

# Rate and CPU time per response, medians.
def service(check, running, shape)
  found = Array.new(MEASUREMENTS) do
    before = running.group.cpu_seconds
    measurement = check.load(running, shape, seconds: 2)
    measurement.cpu_us = (running.group.cpu_seconds - before) * 1e6 / measurement.requests if before
    measurement
  end
  { rate: Bench::Cell.median(found.map(&:rate)), cpu: Bench::Cell.median(found.map(&:cpu_us)) }
end

# Kernel memory for all sockets of the machine, in MiB.
def socket_memory
  File.read("/proc/net/sockstat")[/^TCP:.* mem (\d+)/, 1].to_i * Etc.sysconf(Etc::SC_PAGESIZE) / 1_048_576.0
rescue Errno::ENOENT
  nil
end

def compare(check, calm, stormy)
  check.show("undisturbed", calm[:rate], "/s")
  check.show("meanwhile", stormy[:rate], "/s")
  check.at_least("meanwhile ÷ undisturbed", stormy[:rate] / calm[:rate], 0.8)
  return unless calm[:cpu]

  check.show("CPU time per response, undisturbed and under attack", "#{calm[:cpu].round(1)} and #{stormy[:cpu].round(1)}", "µs")
end

# Serves `scenario`, attacks it (see under_attack), and judges the well-behaved clients' service and the memory for each
# attacker. Returns the attackers' results.
def disturb(check, scenario, options:, attackers:, numbers:, seconds:)
  shape = Bench::Shape.parse("1x5")
  became = nil
  check.serve(scenario, shape, options: options) do |running|
    check.load(running, shape, seconds: 1)
    calm = service(check, running, shape)
    before = running.group.memory_kib
    stormy = nil
    most = peak_memory(running) do
      became = under_attack(running, attackers, *numbers, seconds: seconds) { stormy = service(check, running, shape) }
    end
    compare(check, calm, stormy)
    if before && most
      check.show("memory (PSS) before", before / 1024.0, "MiB")
      check.at_most("memory added per hostile connection", (most - before).fdiv(numbers.sum), 32.0, "KiB")
    end
  end
  became
end
