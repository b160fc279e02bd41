# frozen_string_literal: true

# Restarts under load. Twenty phased and twenty hot restarts in a row lose no request, with and without preloading. Then
# signals and kills at random, some with code that cannot be loaded: afterwards, the next restart still loads the new code,
# and the end leaves nothing behind.
require_relative "../check"
require_relative "../../support/restarts"
require_relative "../../support/processes"
require_relative "../../support/servers"
require "json"

TIMES = 20
RATE = 500
CLIENTS = 20
ACTS = 60

# A server with an application that responds with its version, and random events for it.
class Restarted
  include Fairlead::Test::Waiting
  include Fairlead::Test::Restarts

  attr_reader :server

  def initialize(*flags)
    app = VERSIONED.sub("run ->(_env) {", "run ->(_env) { sleep 0.002;")
    @server = Fairlead::Test::ServerProcess.new(app, "-w", 2, "-t", 5, *flags, files: { "version" => "0" }).start
  end

  # Restarts repeatedly while requests arrive at a constant rate; returns the load tool's report.
  def under_rate(signal, load_tool)
    reader = IO.popen([load_tool, server.url, "-c", CLIENTS.to_s, "--rate", RATE.to_s, "-d", "600", "--json", "-q"])
    (1..TIMES).each { |number| restart(signal, number) }
    Process.kill(:INT, reader.pid)
    JSON.parse(reader.read).fetch("requests")
  ensure
    reader&.close
  end

  def restart(signal, number)
    server.write("version", number.to_s)
    server.signal(signal)
    wait_until("the end of the restart", seconds: 30) { server.stdout.scan(/restart: done/).size == number }
    wait_until("the new code", seconds: 30) { answering == number.to_s }
  end

  # Version that responds; nil without a response.
  def answering
    version(server)
  rescue SystemCallError, IOError, Timeout::Error
    nil
  end

  # Causes one random event.
  def suffer(random, number)
    server.write("version", random.rand < 0.15 ? "broken" : number.to_s)
    case random.rand(8)
    when 0, 1 then server.signal(:USR1)
    when 2 then server.signal(:USR2)
    when 3 then server.signal(:URG)
    when 4 then server.signal(random.rand < 0.5 ? :TTIN : :TTOU)
    when 5, 6 then kill(server.worker_pids.sample(random: random))
    else kill(server.spawner_pid)
    end
    sleep(random.rand(0.4))
  end

  # Returns true if the version responds after these events, at the latest after the second restart.
  def recovers?(version)
    server.write("version", version)
    3.times do
      server.signal(:USR1)
      wait_until("the new code", seconds: 10) { Array.new(8) { answering }.uniq == [version] }
      return true
    rescue Fairlead::Test::Waiting::Expired
      next
    end
    false
  end

  # Processes that are left after the end.
  def end!
    server.stop(seconds: 60)
    wait_until("the end of all", seconds: 20) { left.empty? }
    0
  rescue Fairlead::Test::Waiting::Expired
    left.size
  ensure
    server.destroy
  end

  private

  def kill(pid)
    Process.kill(:KILL, pid) if pid
  rescue Errno::ESRCH
    nil
  end

  # Processes of the server's group that have not ended.
  def left = Fairlead::Test::Processes.group(server.pid)
end

Fairlead::Soak::Check.run("restarts") do |check|
  { "phased" => :USR1, "hot" => :USR2 }.each do |kind, signal|
    %w[--preload --no-preload].each do |flag|
      site = Restarted.new(flag)
      requests = site.under_rate(signal, Fairlead::LoadTool.find)
      check.show("#{kind}, #{flag}, #{TIMES} times: requests", requests["answered"])
      check.at_most("#{kind}, #{flag}: failed", requests["failed"], 0)
      check.at_most("#{kind}, #{flag}: processes left at the end", site.end!, 0)
    end
  end

  seed = Random.new_seed % 1_000_000
  random = Random.new(seed)
  %w[--preload --no-preload].each do |flag|
    site = Restarted.new(flag)
    ACTS.times { |number| site.suffer(random, number) }
    recovers = site.recovers?("last")
    warn site.server.log unless recovers
    check.at_least("signals and kills (seed #{seed}), #{flag}: new code serves at last", recovers ? 1 : 0, 1)
    check.at_most("signals and kills, #{flag}: processes left at the end", site.end!, 0)
  end
end
