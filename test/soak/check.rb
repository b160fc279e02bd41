# frozen_string_literal: true

require "optparse"
require_relative "../../bench/harness"
require_relative "../../bench/harness/cell"

module Fairlead
  module Soak
    # A check (test/soak/checks): measurements that are ratios or fairness, each with its goal; the program ends with status
    # 1 if it misses a goal.
    # `--server NAME` measures another server instead of Fairlead, for comparison.
    class Check
      TRIES = 3

      attr_reader :server, :load_tool

      def self.run(title, arguments = ARGV)
        check = new(title, arguments)
        yield check
        exit check.finish
      rescue Bench::Error => e
        abort "#{title}: #{e.message}"
      end

      def initialize(title, arguments)
        @title = title
        @server = Bench::Server.named("fairlead")
        OptionParser.new do |o|
          o.banner = title
          o.on("--server NAME", "instead of fairlead") { |name| @server = Bench::Server.named(name) }
        end.parse(arguments)
        @load_tool = Bench::Load.pick
        @rows = []
        @disturbed = []
        missing = @server.missing and raise(Bench::Error, "#{@server.name}: #{missing}")
      end

      # Serves `scenario` in `shape` and yields the Running server. `options` are for Fairlead only.
      def serve(scenario, shape, options: [], server: @server, &block)
        extra = server.is_a?(Bench::Servers::Fairlead) ? options : []
        Bench::Site.open(scenario, server, shape) { |site| Bench::Running.start(server, site, shape, extra: extra, &block) }
      end

      # Returns a measurement, repeated up to twice if the host took too much CPU time away. `extent`: `seconds:`,
      # `requests:` or other arguments of the load tool.
      def load(running, shape, path: "/", **extent)
        extent = { seconds: 3, tls: running.tls }.compact.merge(extent)
        found = nil
        TRIES.times do
          found, stolen = Bench::Noise.during { @load_tool.measure(running.url(path), connections: shape.connections, **extent) }
          break if stolen <= Bench::Noise::TOLERABLE

          @disturbed << stolen
        end
        found
      end

      # Adds a measurement without a goal.
      def show(name, value, unit = "")
        add(name, value, unit, "", true)
      end

      def at_least(name, value, aim, unit = "")
        add(name, value, unit, "≥ #{figure(aim)}", !value.nil? && value >= aim)
      end

      def at_most(name, value, aim, unit = "")
        add(name, value, unit, "≤ #{figure(aim)}", !value.nil? && value <= aim)
      end

      # Prints the table; returns 0 if every goal was met.
      def finish
        widths = @rows.transpose.map { |column| column.map(&:size).max }
        puts "#{@title}: #{@server.name} #{@server.version}, #{@load_tool.version}", ""
        @rows.each { |row| puts row.zip(widths).map { |cell, width| cell.ljust(width) }.join("  ").rstrip }
        puts "", disturbance unless @disturbed.empty?
        @rows.any? { |row| row.last == "MISSED" } ? 1 : 0
      end

      private

      def add(name, value, unit, aim, met)
        verdict = met ? "ok" : "MISSED"
        @rows << [name, "#{figure(value)} #{unit}".rstrip, aim, aim.empty? ? "" : verdict]
        warn "  #{@rows.last.reject(&:empty?).join("  ")}"
      end

      def disturbance
        worst = (@disturbed.max * 100).round
        "Disturbed: during #{@disturbed.size} measurements the host took up to #{worst} % of the CPU time away. Those were made again, " \
          "twice at the most."
      end

      def figure(value)
        case value
        when nil then "not known"
        when Float then value.abs < 10 ? format("%.3g", value) : format("%.1f", value)
        else value.to_s
        end
      end
    end
  end
end
