# frozen_string_literal: true

require_relative "plot/svg"
require_relative "plot/palette"
require_relative "plot/panels"
require_relative "plot/rates"
require_relative "plot/fairness"
require_relative "plot/latencies"
require_relative "plot/predictions"
require_relative "plot/summary"
require_relative "plot/memory"
require_relative "plot/growth"

module Bench
  # Plots of a Result as SVG text. Every plot except Summary is a stack of panels, one for each shape; `draw` returns
  # nil if there is nothing to draw.
  module Plot
  end
end
