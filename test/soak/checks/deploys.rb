# frozen_string_literal: true

# Thousands of WebSockets and event streams, over TLS too, hear broadcasts with and without a history while all workers are replaced,
# again and again: none is closed, each gets every message once, and a broadcast takes little longer than at other times. No page
# request fails. Clients of all kinds among them get their answers.
# FAIRLEAD_SOAK_CLIENTS, FAIRLEAD_SOAK_RATE, FAIRLEAD_SOAK_PHASED, FAIRLEAD_SOAK_HOT, FAIRLEAD_SOAK_REFORKS and FAIRLEAD_SOAK_CHANGES
# (of the number of workers) set the numbers. With FAIRLEAD_SOAK_MAX_REQUESTS, workers are also replaced after so many requests.
require "fairlead"
require "json"
require_relative "../check"
require_relative "../../support/processes"
require_relative "../../support/server_process"
require_relative "../../support/staying"

CLIENTS = Integer(ENV.fetch("FAIRLEAD_SOAK_CLIENTS", "5000"), 10)
RATE = Float(ENV.fetch("FAIRLEAD_SOAK_RATE", "50"))
RESTARTS = { USR1: %w[PHASED 20], USR2: %w[HOT 5], URG: %w[REFORKS 2], TTIN: %w[CHANGES 2] }.transform_values do |name, times|
  Integer(ENV.fetch("FAIRLEAD_SOAK_#{name}", times), 10)
end
NAMES = { USR1: "phased restart", USR2: "hot restart", URG: "refork" }.freeze

# Seconds without a restart, for comparison, and seconds for each restart, at least.
CALM = 10
EACH = Float(ENV.fetch("FAIRLEAD_SOAK_EACH", "4"))

# The highest 99th percentile of the time of a broadcast, in milliseconds.
GOAL = 250

# Shares of the clients, and how they connect.
GROUPS = {
  "mail" => [0.4, "ws"],
  "kept" => [0.3, "ws"],
  "mail, event streams" => [0.1, "http", "--sse"],
  "kept, TLS 1.3" => [0.1, "wss", "--tls-version", "1.3"],
  "mail, TLS 1.2" => [0.1, "wss", "--tls-version", "1.2"]
}.freeze

# Some of all kinds, which also send messages.
KINDS = { plain: 10, deflated: 5, large: 5, large_deflated: 3, slow: 2, stream: 5, tls12: 5, tls13: 5, tls_stream: 3 }.freeze

# A server and its clients.
class Deployed
  include Fairlead::Test::Waiting
  include Fairlead::Test::Secured

  OPTIONS = %w[-w 2 -t 2 --publish-socket tmp/sockets/fairlead.sock --deflate context].freeze
  LIMIT = ENV.key?("FAIRLEAD_SOAK_MAX_REQUESTS") ? ["--worker-max-requests", ENV.fetch("FAIRLEAD_SOAK_MAX_REQUESTS")] : []

  attr_reader :server

  def initialize
    files = { "version" => "1", "tmp/sockets/.keep" => "", **certificate_files }
    @server = Fairlead::Test::ServerProcess.new(Fairlead::Test::Staying::APPLICATION, *OPTIONS, *LIMIT, "-b", ssl_address, files: files).start
    @restarts = 0
  end

  # Broadcasts for so many seconds, and runs the block meanwhile. Returns reports of the load tool: one for each group of clients, and one about
  # page requests.
  def broadcast(load_tool, seconds)
    pages = IO.popen([load_tool, server.url, "-c", "4", "--rate", "20", "-d", "3600", "--json", "-q"])
    tools = GROUPS.to_h { |name, group| [name, start(load_tool, name, seconds, group)] }
    yield
    reports = tools.transform_values { |tool| JSON.parse(tool.read) }
    Process.kill(:INT, pages.pid)
    [reports, JSON.parse(pages.read).fetch("requests")]
  ensure
    [pages, *tools&.values].compact.each(&:close)
  end

  # Replaces all workers, or changes their number, repeatedly.
  def replace(signal, times)
    (1..times).each do |time|
      begun = monotonic
      server.write("version", (@restarts += 1).to_s)
      server.signal(signal)
      signal == :TTIN ? add_and_remove : finish(signal, time)
      sleep([begun + EACH - monotonic, 0].max)
    end
  end

  # Number of workers that were replaced for their requests.
  def recycled = server.stdout.scan("(worker_max_requests)").size

  def crowd = Fairlead::Test::Staying.new(server, rate: 4, **KINDS)

  # Megabytes of all processes together.
  def memory = processes.sum { |pid| Fairlead::Test::Processes.proportional_memory(pid) } >> 20

  # Descriptors of all processes together.
  def descriptors = processes.sum { |pid| Fairlead::Test::Processes.descriptors(pid) }

  # Ends the server. Returns the number of processes that are left.
  def end!
    server.stop(seconds: 60)
    Fairlead::Test::Processes.group(server.pid).size
  ensure
    server.destroy
  end

  private

  def finish(signal, time)
    wait_until("the end of the restart", seconds: 180) { server.stdout.scan(/#{NAMES.fetch(signal)}: done/).size == time }
  end

  # Waits for one worker more, and then for its end.
  def add_and_remove
    wait_until("a worker more", seconds: 60) { server.worker_pids.size > 2 && server.stdout.lines.last.include?("booted") }
    server.signal(:TTOU)
    wait_until("a worker less", seconds: 60) { server.worker_pids.size == 2 }
  end

  def processes = [server.pid, server.spawner_pid, *server.worker_pids].compact

  def start(load_tool, name, seconds, (share, scheme, *arguments))
    channel = "#{name[/\w+/]}-#{GROUPS.keys.index(name)}-#{@restarts}"
    address = if %w[wss
                    https].include?(scheme)
                "#{scheme}://127.0.0.1:#{Fairlead::Test::Staying.tls_port(server)}"
              else
                "#{scheme}://127.0.0.1:#{server.port}"
              end
    kind = scheme == "http" ? [] : ["--broadcast"]
    IO.popen([load_tool, "#{address}/?#{channel}", "-c", (CLIENTS * share).ceil.to_s, *kind, "--publishers", "2", "--rate", RATE.to_s,
              "--messages", (RATE * seconds).ceil.to_s, "--publish", server.url("/publish?#{channel}"), "--ready", "ready",
              "--timeout", "60", "--json", "-q", *(["-k"] if address.start_with?("wss")), *arguments])
  end
end

# A publisher changes its worker in a restart. Only the history has an order of all workers.
def judge_order(check, name, count)
  what = "#{name}: messages out of order"
  name.include?("kept") ? check.at_most(what, count, 0) : check.show(what, count)
end

def judge(check, title, reports, pages)
  reports.each do |name, report|
    name = "#{title}, #{name}"
    sockets, messages, deliveries = report.values_at("sockets", "messages", "deliveries")
    check.show("#{name}: clients", sockets["subscribed"])
    check.at_most("#{name}: clients closed", sockets["asked"] - sockets["left"], 0)
    check.at_most("#{name}: messages lost", deliveries["lost"], 0)
    check.at_most("#{name}: messages received twice", deliveries["duplicated"], 0)
    judge_order(check, name, deliveries["out_of_order"])
    check.at_most("#{name}: messages not published", messages.values_at("rejected", "unsent").sum, 0)
    check.show("#{name}: time of a broadcast, p50", report.dig("latency_ms", "p50"), "ms")
    check.at_most("#{name}: time of a broadcast, p99", report.dig("latency_ms", "p99"), GOAL, "ms")
    check.show("#{name}: time of a broadcast, longest", report.dig("latency_ms", "max"), "ms")
    warn report.values_at("errors", "closed_with", "reasons").inspect if sockets["left"] < sockets["asked"]
  end
  check.at_most("#{title}: failed page requests", pages["failed"], 0)
end

Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
Fairlead::Soak::Check.run("deploys") do |check|
  site = Deployed.new
  load_tool = Fairlead::LoadTool.find
  before = [site.memory, site.descriptors]
  reports, pages = site.broadcast(load_tool, CALM) { nil }
  judge(check, "calm", reports, pages)

  crowd = site.crowd
  crowd.begin
  reports, pages = site.broadcast(load_tool, RESTARTS.values.sum * EACH) do
    sleep 2
    crowd.during(seconds: 3600) { RESTARTS.each { |signal, times| site.replace(signal, times) } }
  end
  crowd.finish
  judge(check, "#{RESTARTS.values.join(" + ")} restarts", reports, pages)
  check.show("workers replaced for their requests", site.recycled) if Deployed::LIMIT.any?
  warn crowd.faults.first(20)
  check.at_most("messages lost, twice, wrong or out of order in the crowd of all kinds", crowd.faults.size, 0)
  crowd.drop
  sleep 2
  check.show("memory of all processes before and after", [before.first, site.memory].join(", "), "MiB")
  check.at_most("descriptors of all processes, more than before", site.descriptors - before.last, 10)
  check.at_most("processes left at the end", site.end!, 0)
end
