# frozen_string_literal: true

require "fileutils"
require "json"

module Bench
  # The results of one scenario: its cells and the facts about the machine. One JSON file keeps the results of all
  # scenarios; a page with tables and plots can be made from it at any time.
  class Result
    attr_reader :scenario, :facts, :cells, :label

    def initialize(scenario, facts, cells, label: nil)
      @scenario = scenario
      @facts = facts
      @cells = cells.each { |cell| cell.scenario = scenario }
      @label = label
    end

    class << self
      # The stored result, or nil.
      def load(scenario, file, label)
        found = stored(file)[basename(scenario, label)] or return

        new(scenario, found["facts"], found["cells"].map { |cell| Cell.from_json(cell) }, label: label)
      end

      # Basename => the result as it is in JSON.
      def stored(file)
        File.exist?(file) ? JSON.parse(File.read(file)) : {}
      end

      def basename(scenario, label) = [scenario.name, label].compact.join("-")
    end

    # Key of this result in the file, and the beginning of the names of its page and plots.
    def basename = self.class.basename(scenario, label)

    # [[shape, cells]…] in the order measured.
    def by_shape
      cells.group_by(&:shape).to_a
    end

    # True if latencies are corrected for coordinated omission; deliveries have no client that waits before it sends.
    def corrected?
      cells.any? { |cell| cell.measurements.any?(&:corrected) }
    end

    # The names of servers that have no measurement, because each attempt has failed.
    def unmeasured
      cells.group_by(&:server).filter_map { |server, own| server if own.none?(&:measured?) }
    end

    PLOTS = {
      "rate" => "Rates", "fair" => "Fairness", "latency" => "Latencies", "prediction" => "Predictions",
      "summary" => "Summary", "memory" => "Memory", "growth" => "Growth"
    }.freeze

    # All plots of this result that are worth drawing: file name suffix => SVG text.
    def plots
      drawable = PLOTS.slice(*scenario.plots).transform_values { |name| Plot.const_get(name) }
      drawable.filter_map do |suffix, plot|
        drawn = plot.new(self).draw
        [suffix, drawn] if drawn
      end.to_h
    end

    # Stores the result in the file, replacing an older one. One line for each result keeps diffs readable.
    def store(file)
      all = self.class.stored(file).merge(basename => as_json).sort
      FileUtils.mkdir_p(File.dirname(file))
      File.write("#{file}.new", "{\n#{all.map { |name, result| "#{name.to_json}: #{JSON.generate(result)}" }.join(",\n")}\n}\n")
      File.rename("#{file}.new", file)
    end

    # Writes the page and the plots.
    def draw(directory)
      FileUtils.mkdir_p(directory)
      drawn = plots
      drawn.each { |suffix, svg| File.write(File.join(directory, "#{basename}-#{suffix}.svg"), svg) }
      File.write(File.join(directory, "#{basename}.md"), Report.new(self, drawn.keys).to_markdown)
    end

    private

    def as_json
      { scenario: scenario.name, facts: facts, cells: cells.map(&:as_json) }
    end
  end
end
