# frozen_string_literal: true

# TLS connections, with requests that run in any free worker, while workers are killed and replaced. No client gets another
# client's response, the application runs no request twice, and a restart loses none.
require_relative "../check"
require_relative "support/keeping"
require_relative "support/tls_clients"
require_relative "../../support/certificates"
require_relative "../../support/restarts"
require_relative "../../support/servers"

CLIENTS = 32
KILLS = 10
TIMES = Integer(ENV.fetch("FAIRLEAD_SOAK_RESTARTS", "3"), 10)

ADDRESS = "ssl://127.0.0.1:0?cert=cert.pem&key=key.pem"

# Each request takes 20 ms and writes its number at its beginning.
APP = Keeping::APP.sub('Integer(env["QUERY_STRING"], 10)', "20")

# Eight threads in four workers, so that requests wait.
class Site
  include Fairlead::Test::Waiting
  include Fairlead::Test::Restarts

  attr_reader :server

  def initialize
    pair = Fairlead::Test::Authority.usual.server("localhost")
    files = { "cert.pem" => pair.pem, "key.pem" => pair.key_pem }
    @server = Fairlead::Test::ServerProcess.new(APP, "-w", 4, "-t", 2, files: files, bind: ADDRESS).start
  end

  def kill_one
    victim = @server.worker_pids.sample
    Process.kill(:KILL, victim)
    wait_until("another worker", seconds: 30) { !@server.worker_pids.include?(victim) && @server.worker_pids.size == 4 }
  end

  def replace(signal, name, time)
    before = @server.worker_pids
    @server.signal(signal)
    restarted(@server, name, times: time)
    wait_until("the end of the old workers", seconds: 60) { (@server.worker_pids & before).empty? }
  end

  def clients(pause) = TlsClients.new(@server.port, CLIENTS, pause: pause)

  def repeated = Keeping.repeated(@server.path("ran")).first

  def stop
    @server.stop(seconds: 60)
  ensure
    @server.destroy
  end
end

def judge(check, name, site, found)
  check.show("#{name}: requests with a response", found.answered)
  check.show("#{name}: handshakes", found.handshakes)
  check.at_most("#{name}: answers of other requests", found.wrong.size, 0)
  check.at_most("#{name}: run twice", site.repeated.size, 0)
  warn found.wrong.first(3).inspect unless found.wrong.empty?
end

Fairlead::Soak::Check.run("tls") do |check|
  site = Site.new
  clients = site.clients(0)
  KILLS.times { site.kill_one }
  found = clients.finish
  judge(check, "kill -9 of #{KILLS} workers", site, found)
  # Each kill loses the worker's own connections, and the requests of other workers' connections that it was running.
  check.at_most("kill -9: requests without an answer", found.closed, KILLS * ((CLIENTS / 2) + 2))
  site.stop
  { "phased restart" => :USR1, "hot restart" => :USR2, "refork" => :URG }.each do |name, signal|
    site = Site.new
    clients = site.clients(0.01)
    TIMES.times { |time| site.replace(signal, name, time + 1) }
    found = clients.finish
    judge(check, "#{name}, #{TIMES} times", site, found)
    check.at_most("#{name}: requests without an answer", found.closed, 0)
  ensure
    site&.stop
  end
end
