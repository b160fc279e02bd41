# frozen_string_literal: true

# Cost of `require "fairlead"` over an empty Ruby program, alone and with every part of it named, including the native
# extension: processor time and memory of the process before it ends, and the time from its start to its end, which grows
# with other load on the machine. Ruby starts in turn with and without it.
require_relative "../check"
require "open3"

ROUNDS = 25

REPORT = <<~'RUBY'
  cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :float_millisecond)
  puts [cpu, *File.read("/proc/self/smaps_rollup").scan(/^(Rss|Pss):\s+(\d+)/).to_h.values_at("Rss", "Pss")].join(" ")
RUBY
PROGRAMS = {
  bare: REPORT,
  required: "require 'fairlead'\n#{REPORT}",
  whole: "require 'fairlead'\nFairlead.constants.each { |name| Fairlead.const_get(name) }\n#{REPORT}"
}.freeze

# Milliseconds and MiB.
Start = Struct.new(:elapsed, :cpu, :rss, :pss)

def start(program)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  output, status = Open3.capture2(Bench::Running::ENVIRONMENT, RbConfig.ruby, "-I", File.join(Bench::ROOT, "lib"), "-e", program)
  raise Bench::Error, "Ruby ended with #{status}" unless status.success?

  elapsed = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) * 1000
  cpu, *memory = output.split.map { |figure| Float(figure) }
  Start.new(elapsed, cpu, *memory.map { |kib| kib / 1024 })
end

# Medians of the differences within a round.
def added(starts, name, &figure)
  Bench::Cell.median(starts.map { |round| figure.call(round[name]) - figure.call(round[:bare]) })
end

Fairlead::Soak::Check.run("boot") do |check|
  raise Bench::Error, "needs /proc" unless Bench::ProcessGroup.readable?

  PROGRAMS.each_value { |program| start(program) }
  starts = Array.new(ROUNDS) { PROGRAMS.transform_values { |program| start(program) } }
  check.show("bare ruby: time", Bench::Cell.median(starts.map { |round| round[:bare].elapsed }), "ms")
  check.show("bare ruby: memory (RSS)", Bench::Cell.median(starts.map { |round| round[:bare].rss }), "MiB")
  { required: "require \"fairlead\"", whole: "with every part" }.each do |name, title|
    check.at_most("#{title}: processor time added", added(starts, name, &:cpu), 40.0, "ms")
    check.show("#{title}: time added", added(starts, name, &:elapsed), "ms")
    check.at_most("#{title}: memory added (RSS)", added(starts, name, &:rss), 6.0, "MiB")
    check.show("#{title}: memory added (PSS)", added(starts, name, &:pss), "MiB")
  end
end
