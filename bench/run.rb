# frozen_string_literal: true

# `bin/bench`: measures the installed servers over the scenarios, stores the results and writes pages with tables and
# plots. See bench/METHOD.md.
require_relative "harness"
require_relative "harness/options"
require_relative "harness/cell"
require_relative "harness/turns"
require_relative "harness/machine"
require_relative "harness/report"
require_relative "harness/plot"
require_relative "harness/result"

begin
  options = Bench::Options.parse(ARGV)
  exit if ENV["FAIRLEAD_BENCH_ARGUMENTS"] == "check" && options.servers { nil } # bin/bench checks the arguments before it installs anything

  measure = lambda do |scenario|
    servers = options.servers { |server, reason| warn "skipped #{server.name}: #{reason}" }
    load_tool = Bench::Load.pick
    facts = Bench::Machine.facts(options, load_tool)
    silent = scenario.without_tls(servers).map(&:name)
    facts["Left out, because bench/servers has no TLS for them"] = silent.join(", ") unless silent.empty?
    turns = Bench::Turns.new(scenario, servers, options, load_tool)
    cells = turns.run
    facts["Stolen by the host"] = format("up to %.0f %% of the CPU time of a measurement", turns.most_stolen * 100)
    Bench::Result.new(scenario, facts, cells, label: options.label)
  end

  unmeasured = []
  options.scenarios.each do |scenario|
    reason = scenario.missing and next warn("skipped #{scenario.name}: #{reason}")

    result = options.redraw ? Bench::Result.load(scenario, options.results, options.label) : measure.call(scenario)
    next warn("skipped #{scenario.name}: no results in #{options.results}") unless result

    unmeasured.concat(result.unmeasured.map { |server| "#{server} in #{scenario.name}" }) unless options.redraw
    result.store(options.results) unless options.redraw || result.unmeasured.any?
    result.draw(options.out)
    puts File.join(options.out, "#{result.basename}.md")
  end
  abort "bench: all measurements have failed of #{unmeasured.join(", ")}; the results of these scenarios are not stored" if unmeasured.any?
rescue Bench::Error => e
  abort "bench: #{e.message}"
rescue Interrupt
  abort
end
