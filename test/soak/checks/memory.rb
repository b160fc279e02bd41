# frozen_string_literal: true

# Memory that comes back: peaks of connections, messages, uploads and slow readers. A minute after each, the memory of the process that
# serves (PSS) is within 20 % of before. FAIRLEAD_SOAK_PEAK multiplies the numbers of clients.
require "fairlead"
require_relative "../check"
require_relative "../../support/certificates"
require_relative "../../support/http_client"
require_relative "../../support/server_process"
require_relative "../../support/web_socket"
require_relative "support/peaks"

TIMES = Float(ENV.fetch("FAIRLEAD_SOAK_PEAK", "1"))

# Memory afterwards, as a multiple of before, and the longest time until then, in seconds.
GOAL = 1.2
PATIENCE = 60

# Clients at the peak, and a part of them before it: the first ones make the server load code and fill its caches.
PEAKS = { idle: 5_000, tls: 2_000, http2: 2_000, websockets: 5_000, publications: 300, incomplete: 150, uploads: 300, slow_readers: 300 }.freeze
FIRST = 0.05

def judge(check, name, count)
  site = Peaks.new
  site.warm_up
  site.climb(name, (count * TIMES * FIRST).ceil)
  site.settle
  before = site.memory
  most = site.climb(name, (count * TIMES).ceil)
  seconds = site.seconds_until(PATIENCE) { site.memory <= before * GOAL }
  check.show("#{name}: memory before, at the peak, afterwards", [before, most, site.memory].map { |bytes| (bytes / 1e6).round(1) }.join(", "), "MB")
  check.show("#{name}: within #{((GOAL - 1) * 100).round} % after", seconds || "more than #{PATIENCE}", "s")
  check.at_most("#{name}: memory afterwards ÷ before", site.memory.fdiv(before), GOAL)
ensure
  site&.finish
end

Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
Fairlead::Soak::Check.run("memory") do |check|
  chosen = ENV.fetch("FAIRLEAD_SOAK_PEAKS", PEAKS.keys.join(",")).split(",").map(&:to_sym)
  PEAKS.slice(*chosen).each { |name, count| judge(check, name, count) }
end
