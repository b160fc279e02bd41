# frozen_string_literal: true

# Clients that keep their connections while all workers are replaced repeatedly: the server closes no connection, and
# responds once to every request. Requests come after random pauses, some in two parts, some pipelined, so that a draining
# worker has connections in every state.
require_relative "../check"
require_relative "support/keeping"
require_relative "../../support/restarts"
require_relative "../../support/servers"

TIMES = Integer(ENV.fetch("FAIRLEAD_SOAK_RESTARTS", "5"), 10)
CONNECTIONS = 100
PAUSE = 50

# A server, and its restarts.
class Replaced
  include Fairlead::Test::Waiting
  include Fairlead::Test::Restarts

  attr_reader :server

  def initialize
    @server = Fairlead::Test::ServerProcess.new(Keeping::APP, "-w", 2, "-t", 5).start
  end

  def replace(signal, name)
    TIMES.times do |time|
      before = @server.worker_pids
      @server.signal(signal)
      restarted(@server, name, times: time + 1)
      wait_until("the end of the old workers", seconds: 30) { (@server.worker_pids & before).empty? }
    end
  end

  def path(name) = @server.path(name)

  def stop
    @server.stop(seconds: 60)
  ensure
    @server.destroy
  end
end

Fairlead::Soak::Check.run("keep_alive") do |check|
  { "phased restart" => :USR1, "hot restart" => :USR2, "refork" => :URG }.each do |name, signal|
    site = Replaced.new
    keeping = Keeping.new(site.server.port, connections: CONNECTIONS, pause: PAUSE)
    site.replace(signal, name)
    found = keeping.finish
    repeated, = Keeping.repeated(site.path("ran"))
    check.show("#{name}, #{TIMES} times: requests", found["requests"])
    check.at_least("#{name}: answered", found["answered"], found["requests"])
    check.at_most("#{name}: connections closed", found.values_at("announced", "closed_idle", "closed_busy").sum(&:to_i), 0)
    check.at_most("#{name}: refused, wrong or repeated", found["refused"].to_i + found["wrong"].size + repeated.size, 0)
    warn found["wrong"].inspect unless found["wrong"].empty?
  ensure
    site&.stop
  end
end
