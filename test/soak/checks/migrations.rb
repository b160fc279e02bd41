# frozen_string_literal: true

# 10,000 WebSockets and then 10,000 event streams move to new workers in one restart: the time, and the memory. The application resumes
# them as fast as it can.
require "fairlead"
require "json"
require_relative "../check"
require_relative "../../support/processes"
require_relative "../../support/server_process"
require_relative "../../support/staying"

COUNT = Integer(ENV.fetch("FAIRLEAD_SOAK_CLIENTS", "10000"), 10)
KINDS = { "WebSockets" => ["ws"], "event streams" => ["http", "--sse"] }.freeze

# A server whose processes are watched.
class Moving
  include Fairlead::Test::Waiting

  OPTIONS = %w[-w 2 -t 2 --resume-rate 0 --max-connections 60000].freeze

  attr_reader :server

  def initialize
    @server = Fairlead::Test::ServerProcess.new(Fairlead::Test::Staying::APPLICATION, *OPTIONS).start
    @restarts = 0
  end

  # Opens clients, and runs the block. Returns the report of the load tool.
  def with_clients(load_tool, scheme, *arguments)
    tool = IO.popen([load_tool, "#{scheme}://127.0.0.1:#{server.port}/?mail", "-c", COUNT.to_s, "--idle", "-d", "600", "--ready", "ready",
                     "--timeout", "60", "--json", "-q", *arguments])
    wait_until("all clients to be connected", seconds: 120) { connections(server.worker_pids) == COUNT }
    yield
    Process.kill(:INT, tool.pid)
    JSON.parse(tool.read)
  ensure
    tool&.close
  end

  # Seconds of a restart until the old workers are gone, and until they had no client left, and the most memory meanwhile.
  def restart
    old = server.worker_pids
    most = 0
    watch = Thread.new do
      loop do
        most = [most, memory].max
        sleep(0.05)
      end
    end
    begun = monotonic
    server.signal(:USR1)
    wait_until("the end of the old workers", seconds: 300) do
      server.stdout.scan("restart: done").size == @restarts + 1 && (server.worker_pids & old).empty?
    end
    @restarts += 1
    [monotonic - begun, most]
  ensure
    watch&.kill
  end

  # Megabytes of all processes together.
  def memory
    pids = [server.pid, server.spawner_pid, *server.worker_pids].compact
    pids.sum do |pid|
      Fairlead::Test::Processes.proportional_memory(pid)
    rescue SystemCallError
      0
    end >> 20
  end

  def end!
    server.stop(seconds: 60)
  ensure
    server.destroy
  end

  private

  def connections(pids) = pids.sum { |pid| Fairlead::Test::Processes.clients(pid, server.port).size }
end

Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
Fairlead::Soak::Check.run("migrations") do |check|
  load_tool = Fairlead::LoadTool.find
  KINDS.each do |name, arguments|
    site = Moving.new
    alone, most = site.restart
    check.show("a restart without clients", alone, "s")
    check.show("a restart without clients: most memory", most, "MiB")
    report = site.with_clients(load_tool, *arguments) do
      check.show("#{COUNT} #{name}: memory", site.memory, "MiB")
      2.times do |time|
        taken, most = site.restart
        check.show("#{COUNT} #{name}: restart #{time + 1}", taken, "s")
        check.show("#{COUNT} #{name}: most memory in restart #{time + 1}", most, "MiB")
        check.show("#{COUNT} #{name}: memory after it", site.memory, "MiB")
      end
    end
    check.at_most("#{name} closed", report["sockets"]["asked"] - report["sockets"]["left"], 0)
  ensure
    site&.end!
  end
end
