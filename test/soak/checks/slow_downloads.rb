# frozen_string_literal: true

# 200 clients that download 1 GiB slowly, in every way of sending a file. None is disconnected, memory stays constant, others
# are served as without them, and their resources are free when they have left.
require_relative "../check"
require_relative "support/downloads"
require "json"
require "open3"

CLIENTS = 200
SCENARIO = Downloads.scenario("slow downloads", 1 << 30)
SHAPE = Bench::Shape.parse("1x5")
MEASUREMENTS = 4
DEADLINE = 10

# Yields while they download and returns their results.
def while_they_download(running, path)
  command = [RbConfig.ruby, File.join(__dir__, "support/downloaders.rb"), running.port, path, CLIENTS].map(&:to_s)
  Open3.popen2(*command, rlimit_nofile: Process.getrlimit(:NOFILE).last) do |input, output, _process|
    raise Bench::Error, "the downloads did not begin" unless output.gets == "ready\n"

    yield
    input.close
    JSON.parse(output.read)
  end
end

# Median of several measurements of short requests.
def short_rate(check, running)
  Bench::Cell.median(Array.new(MEASUREMENTS) { check.load(running, SHAPE, path: Downloads::SHORT, seconds: 2).rate })
end

# Waits until there are no more descriptors than before, and returns their number, or the number after the timeout.
def descriptors_left(running, before)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE
  sleep 0.05 until running.group.descriptors <= before || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
  running.group.descriptors
end

def judge(check, way, seen)
  found = seen[:found]
  check.at_least("#{way}: downloads begun", found["begun"], CLIENTS)
  check.at_most("#{way}: downloads cut off", found["cut_off"], 0)
  check.show("#{way}: smallest download", found["least"] / 1024.0, "KiB")
  check.show("#{way}: short requests without downloads", seen[:alone], "/s")
  check.at_least("#{way}: short requests beside them ÷ without", seen[:beside] / seen[:alone], 0.8)
  return unless seen[:before]

  check.at_most("#{way}: memory (PSS) for each", (seen[:first] - seen[:before]).fdiv(CLIENTS), 32.0, "KiB")
  check.at_most("#{way}: memory added later", (seen[:last] - seen[:first]) / 1024.0, 2.0, "MiB")
  check.show("#{way}: descriptors of each", (seen[:descriptors_most] - seen[:descriptors_before]).fdiv(CLIENTS))
  check.at_most("#{way}: descriptors left when they have left", seen[:descriptors_left] - seen[:descriptors_before], 0)
end

def look_at(check, running, path)
  group = running.group
  check.load(running, SHAPE, path: Downloads::SHORT, seconds: 1)
  seen = { alone: short_rate(check, running), before: group.memory_kib, descriptors_before: group.descriptors }
  seen[:found] = while_they_download(running, path) do
    seen[:first] = group.memory_kib
    seen[:beside] = short_rate(check, running)
    seen.merge!(last: group.memory_kib, descriptors_most: group.descriptors)
  end
  seen[:descriptors_left] = descriptors_left(running, seen[:descriptors_before]) if seen[:before]
  seen
end

Fairlead::Soak::Check.run("slow downloads") do |check|
  Downloads.each_server(check) do |server|
    seen = check.serve(SCENARIO, SHAPE, server: server) { |running| look_at(check, running, SCENARIO.path(server)) }
    judge(check, server.name, seen)
  end
end
