# frozen_string_literal: true

require "optparse"
require "tmpdir"

module Bench
  # The command line of `bin/bench`.
  class Options
    attr_reader :scenarios, :rounds, :seconds, :connections, :label, :redraw

    def self.parse(arguments)
      new.tap { |options| options.parse(arguments) }
    end

    def initialize
      @rounds = 5
      @seconds = 3.0
    end

    def parse(arguments)
      @scenarios = parser.parse(arguments).flat_map { |name| Scenario.matching(name) }
      @scenarios = Scenario.names.map { |name| Scenario.named(name) } if @scenarios.empty?
      raise Error, "--workers and --threads go together" if @workers.nil? != @threads.nil?
    rescue OptionParser::ParseError => e
      raise Error, "#{e.message}\n#{parser.help}"
    end

    # Folder of the pages and plots.
    def out = own_folder || File.join(ROOT, "target/bench")

    # File of the results.
    def results = File.join(own_folder || File.join(ROOT, "bench"), "results.json")

    # Seconds of load before each measurement that are not counted.
    def warmup
      @quick ? 0.5 : 1
    end

    def shapes(scenario)
      return scenario.shapes(connections) unless @workers

      scenario.shapes(connections).map { |shape| [shape.connections, shape.mix] }.uniq.map do |number, mix|
        Shape.new(workers: @workers, threads: @threads, connections: number, mix: mix)
      end
    end

    # The requested servers, or all installed ones; a missing server is reported to the block.
    def servers
      wanted = @servers ? @servers.map { |name| Server.named(name) } : Server.all
      wanted.reject { |server| server.missing&.tap { |reason| yield server, reason } }
    end

    private

    def own_folder = @out || (File.join(Dir.tmpdir, "fairlead-bench") if @quick)

    def parser
      @parser ||= OptionParser.new do |o|
        o.banner = "Usage: bin/bench [scenario…] [options]\nScenarios: #{Scenario.names.join(", ")} (default: all)"
        o.on("--servers A,B", Array, "only these (#{Server.all.map(&:name).join(", ")})") { |names| @servers = names }
        o.on("--rounds N", Integer, "measurements of each server, in turn (5)") { |number| @rounds = number }
        o.on("--seconds S", "--duration S", Float, "of one measurement (3), unless it has a number of requests") { |seconds| @seconds = seconds }
        o.on("--connections N", Integer, "connections (10, or the scenario's own number)") { |number| @connections = number }
        o.on("--workers N", Integer, "with --threads: this shape instead of the scenario's") { |number| @workers = number }
        o.on("--threads N", Integer, "with --workers") { |number| @threads = number }
        o.on("--ruby LABEL", "name of this Ruby in headings and file names") { |label| @label = label }
        o.on("--out DIR", "for pages, plots and results.json (target/bench, bench/results.json)") { |directory| @out = File.expand_path(directory) }
        o.on("--quick", "one short round, into the temporary directory, to check that everything works") { quick }
        o.on("--redraw", "measure nothing: make pages and plots from the stored results") { @redraw = true }
      end
    end

    def quick
      @quick = true
      @rounds = 1
      @seconds = 1.0
    end
  end
end
