# frozen_string_literal: true

module Bench
  # Operations of a server beside more and more other things, such as idle connections or waiting requests (Drive::Growth). A *setup* makes
  # n of these things and measures the operations: its `figures(target, count)` returns name => value, where the name says the unit
  # ("request beside them, µs"). Optional is `warm_up(target)`.
  module Growth
    # Arguments, by the name of a server, with which idle connections and waiting requests outlast a measurement, and no worker is replaced
    # meanwhile.
    PATIENT = { "fairlead" => %w[--keep-alive-timeout 600 --queue-timeout 600 --refork-after=0] }.freeze
  end
end

require_relative "growth/figure"
require_relative "growth/cost"
require_relative "growth/clients"
require_relative "growth/http2_client"
require_relative "growth/idle"
require_relative "growth/waiting"
require_relative "growth/publishing"
require_relative "growth/endings"
require_relative "growth/shapes"
require_relative "growth/control"
require_relative "growth/files"
require_relative "growth/requests"
require_relative "growth/slow_readers"
require_relative "growth/host_certificates"
require_relative "growth/timers"
require_relative "growth/log_lines"
require_relative "growth/streams"
require_relative "growth/time_outs"
require_relative "growth/addresses"
require_relative "growth/arrivals"
require_relative "growth/channels"
require_relative "growth/table"
