# frozen_string_literal: true

# Loads the benchmark harness for `bench/run.rb` (compares servers over scenarios) and `test/soak/checks/*.rb` (goals
# for ratios or fairness). Standard library only. `bench/METHOD.md` describes the method.
module Bench
  ROOT = File.expand_path("..", __dir__)

  # An error that the user can fix: printed without a backtrace.
  class Error < StandardError; end
end

require_relative "harness/shape"
require_relative "harness/dialect"
require_relative "harness/cable_dialect"
require_relative "harness/drive"
require_relative "harness/certificates"
require_relative "harness/tls"
require_relative "harness/idle_connections"
require_relative "harness/growth"
require_relative "harness/scenario"
require_relative "harness/server"
require_relative "harness/site"
require_relative "harness/process_group"
require_relative "harness/running"
require_relative "harness/binaries"
require_relative "harness/measurement"
require_relative "harness/noise"
require_relative "harness/router"
require_relative "harness/load"
require_relative "harness/rails_site"
require_relative "harness/large_site"
require_relative "simulation"

Dir[File.join(__dir__, "{scenarios,servers}", "*.rb")].sort.each { |file| require file }
