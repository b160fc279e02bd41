# frozen_string_literal: true

# Loads the benchmark harness: what `bench/run.rb` (servers compared over scenarios) and `test/soak/checks/*.rb`
# (aims that are ratios or fairness) are made of. Standard library only. `bench/METHOD.md` says how it measures.
module Bench
  ROOT = File.expand_path("..", __dir__)

  # Something the person at the keyboard can put right: printed without a backtrace.
  class Error < StandardError; end
end

require_relative "harness/shape"
require_relative "harness/dialect"
require_relative "harness/drive"
require_relative "harness/certificates"
require_relative "harness/tls"
require_relative "harness/idle_connections"
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
require_relative "simulation"

Dir[File.join(__dir__, "{scenarios,servers}", "*.rb")].sort.each { |file| require file }
