# frozen_string_literal: true

# What `require "fairlead"` costs over a Ruby that does nothing, alone and with every part of it named, the native extension
# included: the time of the whole process, and its memory before it ends. Ruby is started in turn with and without.
require_relative "../harness"
require_relative "../harness/check"
require "open3"

ROUNDS = 25

REPORT = 'puts File.read("/proc/self/smaps_rollup").scan(/^(Rss|Pss):\s+(\d+)/).to_h.values_at("Rss", "Pss").join(" ")'
PROGRAMS = {
  bare: REPORT,
  required: %(require "fairlead"; #{REPORT}),
  whole: %(require "fairlead"; Fairlead.constants.each { |name| Fairlead.const_get(name) }; #{REPORT})
}.freeze

Start = Struct.new(:ms, :rss, :pss)

def start(program)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  output, status = Open3.capture2(Bench::Running::ENVIRONMENT, RbConfig.ruby, "-I", File.join(Bench::ROOT, "lib"), "-e", program)
  raise Bench::Error, "Ruby ended with #{status}" unless status.success?

  Start.new((Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) * 1000, *output.split.map { |kib| Integer(kib) / 1024.0 })
end

# Medians of the differences within a round.
def added(starts, name, &figure)
  Bench::Cell.median(starts.map { |round| figure.call(round[name]) - figure.call(round[:bare]) })
end

Bench::Check.run("boot") do |check|
  raise Bench::Error, "needs /proc" unless Bench::ProcessGroup.readable?

  PROGRAMS.each_value { |program| start(program) }
  starts = Array.new(ROUNDS) { PROGRAMS.transform_values { |program| start(program) } }
  check.show("bare ruby: time", Bench::Cell.median(starts.map { |round| round[:bare].ms }), "ms")
  check.show("bare ruby: memory (RSS)", Bench::Cell.median(starts.map { |round| round[:bare].rss }), "MiB")
  { required: "require \"fairlead\"", whole: "with every part" }.each do |name, title|
    check.at_most("#{title}: time added", added(starts, name, &:ms), 40.0, "ms")
    check.at_most("#{title}: memory added (RSS)", added(starts, name, &:rss), 6.0, "MiB")
    check.show("#{title}: memory added (PSS)", added(starts, name, &:pss), "MiB")
  end
end
