# frozen_string_literal: true

require "fileutils"
require "json"

module Bench
  # One scenario measured: its cells and the facts of the machine. Kept as JSON so that tables and plots can be drawn again.
  class Result
    attr_reader :scenario, :facts, :cells, :label

    def initialize(scenario, facts, cells, label: nil)
      @scenario = scenario
      @facts = facts
      @cells = cells.each { |cell| cell.scenario = scenario }
      @label = label
    end

    def self.load(scenario, directory, label)
      path = File.join(directory, "#{[scenario.name, label].compact.join("-")}.json")
      raise Error, "no figures of #{scenario.name} in #{directory}" unless File.exist?(path)

      found = JSON.parse(File.read(path))
      new(scenario, found["facts"], found["cells"].map { |cell| Cell.from_json(cell) }, label: label)
    end

    # What the files of this result are called.
    def basename
      [scenario.name, label].compact.join("-")
    end

    # [[shape, cells]…] in the order measured.
    def by_shape
      cells.group_by(&:shape).to_a
    end

    # Whether latencies are corrected for coordinated omission; deliveries have nobody who waits politely.
    def corrected?
      cells.any? { |cell| cell.measurements.any?(&:corrected) }
    end

    PLOTS = {
      "rate" => "Rates", "fair" => "Fairness", "latency" => "Latencies", "prediction" => "Predictions",
      "summary" => "Summary"
    }.freeze

    # Everything of this result that is worth drawing: file name suffix => SVG text.
    def plots
      drawable = PLOTS.slice(*scenario.plots).transform_values { |name| Plot.const_get(name) }
      drawable.filter_map do |suffix, plot|
        drawn = plot.new(self).draw
        [suffix, drawn] if drawn
      end.to_h
    end

    def write(directory)
      FileUtils.mkdir_p(directory)
      drawn = plots
      drawn.each { |suffix, svg| File.write(File.join(directory, "#{basename}-#{suffix}.svg"), svg) }
      File.write(File.join(directory, "#{basename}.md"), Report.new(self, drawn.keys).to_markdown)
      File.write(File.join(directory, "#{basename}.json"), JSON.generate(as_json))
    end

    private

    def as_json
      { scenario: scenario.name, facts: facts, cells: cells.map(&:as_json) }
    end
  end
end
