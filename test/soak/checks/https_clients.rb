# frozen_string_literal: true

# 1,000 HTTPS connections of curl, Node, Go, Java and Chromium while all workers are replaced repeatedly: none is closed. Each client makes
# requests between and during the restarts. At the end, the sessions of the connections are resumed.
# FAIRLEAD_SOAK_CLIENTS, FAIRLEAD_SOAK_PHASED, FAIRLEAD_SOAK_HOT and FAIRLEAD_SOAK_REFORKS set the numbers.
$LOAD_PATH.unshift(File.expand_path("../..", __dir__))
require "fairlead"
require_relative "../check"
require "support/certificates"
require "support/processes"
require "support/server_process"
require "support/waiting"
require "browser/support/browser"
require_relative "support/https_clients"

COUNT = Integer(ENV.fetch("FAIRLEAD_SOAK_CLIENTS", "1000"), 10)
TIMES = { USR1: %w[PHASED 20], USR2: %w[HOT 3], URG: %w[REFORKS 2] }.transform_values do |(name, times)|
  Integer(ENV.fetch("FAIRLEAD_SOAK_#{name}", times), 10)
end
NAMES = { USR1: "phased restart", USR2: "hot restart", URG: "refork" }.freeze
HOSTS = 16

# A server and its restarts.
class Kept
  include Fairlead::Test::Waiting
  include Fairlead::Test::Secured

  # A browser that asks all at once needs responses that take a while, or it would use one connection twice.
  APP = <<~'RUBY'
    run(lambda do |env|
      sleep 0.1 if env["PATH_INFO"] == "/pause"
      [200, { "content-type" => "text/plain", "access-control-allow-origin" => "*" }, ["hello"]]
    end)
  RUBY
  OPTIONS = %w[-w 2 -t 8 --keep-alive-timeout 3600 --no-http2].freeze

  def initialize
    pair = Fairlead::Test::Authority.usual.server("localhost")
    files = { **certificate_files(pair), "ca.pem" => Fairlead::Test::Authority.usual.pem }
    @server = Fairlead::Test::ServerProcess.new(APP, *OPTIONS, files: files, bind: ssl_address)
    File.chmod(0o600, @server.path("key.pem"))
    @server.start
    @restarts = Hash.new(0)
  end

  def port = @server.port
  def authority = @server.path("ca.pem")

  # Begins a restart, and runs the block at any time of it. Returns when the old workers have ended.
  def restart(signal)
    old = @server.worker_pids
    @server.signal(signal)
    sleep rand(1.5)
    yield
    wait_until("the #{NAMES.fetch(signal)}", seconds: 120) do
      @server.stdout.scan("#{NAMES.fetch(signal)}: done").size > @restarts[signal] && (@server.worker_pids & old).empty?
    end
    @restarts[signal] += 1
  end

  # Ports of the clients with a connection.
  def peers
    File.readlines("/proc/net/tcp").drop(1).map(&:split).filter_map do |_, own, peer, state|
      peer if own.end_with?(format(":%04X", port)) && state == "01"
    end
  end

  def connections = @server.worker_pids.to_h { |pid| [pid, Fairlead::Test::Processes.clients(pid, port).size] }
  def complaints = @server.stderr

  def end!
    @server.stop(seconds: 60)
  ensure
    @server.destroy
  end
end

# All clients of a server.
class Everybody
  attr_reader :asked, :faults

  def initialize(site)
    names = HttpsClients.names
    browser = HOSTS if ChromiumClients.missing.nil?
    each = (COUNT - (browser.to_i * ChromiumClients::EACH)) / names.size
    @programs = names.map { |name| HttpsClients.new(name, "https://localhost:#{site.port}/", site.authority, each) }
    @all = [*@programs, *(ChromiumClients.new(site.port, browser) if browser)]
    @asked = Hash.new(0)
    @faults = []
  end

  def counts = @all.to_h { |client| [client.name, client.count] }

  def ask(clients = @all)
    clients.each(&:ask)
    clients.each { |client| judge(client, client.results) }
  end

  # Resumes the sessions. Returns name => connections with a resumed session.
  def renew
    @programs.each(&:renew)
    @programs.to_h do |client|
      results = client.results
      judge(client, results)
      [client.name, results["resumed"]]
    end.compact
  end

  def close = @all.each(&:close)

  private

  def judge(client, results)
    @asked[client.name] += client.count
    @faults << [client.name, results] unless results["answered"] == client.count && results["faults"].empty?
  end
end

Fairlead::Soak::Check.run("https_clients") do |check|
  site = Kept.new
  clients = Everybody.new(site)
  2.times { clients.ask }
  before = site.peers
  TIMES.each do |signal, times|
    gone = new = 0
    times.times do
      site.restart(signal) { clients.ask if rand < 0.5 }
      clients.ask
      now = site.peers
      gone += (before - now).size
      new += (now - before).size
      before = now
      warn "  #{NAMES.fetch(signal)}: #{site.connections}"
    end
    check.at_most("#{times} × #{NAMES.fetch(signal)}: connections closed", gone, 0)
    check.at_most("#{times} × #{NAMES.fetch(signal)}: new connections", new, 0)
  end
  check.show("connections at the end", before.size)
  clients.renew.each { |name, resumed| check.at_least("#{name}: sessions resumed", resumed, clients.counts.fetch(name)) }
  clients.counts.each { |name, count| check.show("#{name}: connections, requests", "#{count}, #{clients.asked[name]}") }
  warn clients.faults.first(10), site.complaints
  check.at_most("wrong or missing responses", clients.faults.size, 0)
ensure
  clients&.close
  site&.end!
end
