# frozen_string_literal: true

# Clients move to another worker while one of the two is killed, at a random point, again and again. Each client is served by one
# worker, or closed; none gets a message twice, and one that is not closed gets all of them. Afterwards nothing is left over.
# FAIRLEAD_SOAK_ROUNDS sets the number of kills.
require_relative "../check"
require_relative "../../support/processes"
require_relative "../../support/server_process"
require_relative "../../support/staying"
require "fairlead"

ROUNDS = Integer(ENV.fetch("FAIRLEAD_SOAK_ROUNDS", "100"), 10)
CLIENTS = { plain: 8, deflated: 4, large: 4, slow: 2, stream: 4, tls12: 3, tls13: 3, tls_stream: 2 }.freeze

# The most additional descriptors of a process after all rounds, without connections.
MORE = 6

# A server, its clients, and kills in the middle of restarts.
class Killed
  include Fairlead::Test::Waiting
  include Fairlead::Test::Secured

  OPTIONS = %w[-w 2 -t 2 --publish-socket tmp/sockets/fairlead.sock --deflate context --drain-spread 1].freeze
  WAYS = { USR1: 6, USR2: 2, URG: 1, TTIN: 1 }.flat_map { |signal, share| [signal] * share }.freeze

  attr_reader :mistakes, :ends, :wrong

  def initialize(random)
    @random = random
    files = { "tmp/sockets/.keep" => "", **certificate_files }
    @server = Fairlead::Test::ServerProcess.new(Fairlead::Test::Staying::APPLICATION, *OPTIONS, "-b", ssl_address, files: files).start
    @crowd = Fairlead::Test::Staying.new(@server, **CLIENTS)
    @crowd.begin
    @mistakes = []
    @wrong = []
    @ends = Hash.new(0)
  end

  # Returns false if something is wrong with the owners of the connections afterwards.
  def round
    @crowd.during(seconds: 180) { kill_in_a_restart && settle }
    @crowd.clients.select(&:over?).each { |client| @ends[client.over] += 1 }
    @mistakes.concat(@crowd.renew)
    @crowd.during(seconds: 60) { wait_until("one owner for each connection", seconds: 40) { owners_are_right? } }
    true
  rescue Fairlead::Test::Waiting::Expired => e
    @wrong << "#{e.message} #{@owners} #{@deed}"
    warn @server.stdout.lines.last(12)
    false
  end

  # Messages that the present clients have received.
  def received = @crowd.clients.sum { |client| client.ledger.size }

  def finish
    @crowd.finish
    published = @crowd.publishers.published
    ended, open = @crowd.clients.partition(&:over?)
    @mistakes.concat(open.flat_map { |client| client.faults(published) } + ended.flat_map(&:mistakes))
  end

  # Descriptors of each process that are not connections of clients.
  def descriptors
    pids = [@server.pid, @server.spawner_pid, *@server.worker_pids].compact
    pids.to_h { |pid| [pid, Fairlead::Test::Processes.descriptors(pid) - clients(pid).size] }
  end

  # Number of processes that are left after the end.
  def end!
    @crowd.drop
    @server.stop(seconds: 60)
    Fairlead::Test::Processes.group(@server.pid).size
  ensure
    @server.destroy
  end

  private

  # Their addresses, with the port of the server: two clients may use one port, for two ports of the server.
  def clients(pid)
    [@server.port, Fairlead::Test::Staying.tls_port(@server)].flat_map do |port|
      Fairlead::Test::Processes.clients(pid, port).map { |client| "#{client}-#{port}" }
    end
  end

  def kill_in_a_restart
    way = WAYS.sample(random: @random)
    @server.signal(way)
    sleep(@random.rand(1.2))
    victim = @server.worker_pids.sample(random: @random)
    @deed = "after #{way}: killed #{victim} of #{@server.worker_pids}"
    Process.kill(:KILL, victim) if victim
    @server.signal(:TTOU) if way == :TTIN
    true
  rescue Errno::ESRCH
    true
  end

  # Waits until two workers serve, and nothing else happens.
  def settle
    wait_until("the end of the restart", seconds: 120) do
      pids = @server.worker_pids
      next unless pids.size == 2

      sleep 0.5
      @server.worker_pids == pids
    end
  end

  # Each connection belongs to one process. The publisher has one, too, at most times.
  def owners_are_right?
    pids = [@server.pid, @server.spawner_pid, *@server.worker_pids].compact
    owners = pids.flat_map { |pid| clients(pid) }.tally
    open = @crowd.clients.count { |client| !client.over? }
    @owners = "#{open} clients, #{owners.size} connections, several owners: #{owners.select { |_, count| count > 1 }}"
    owners.values.all?(1) && (open..open + 1).cover?(owners.size)
  rescue Errno::ENOENT
    false # a process has ended meanwhile
  end
end

Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
Fairlead::Soak::Check.run("migration_kills") do |check|
  seed = Integer(ENV.fetch("FAIRLEAD_SOAK_SEED") { Random.new_seed % 1_000_000 })
  site = Killed.new(Random.new(seed))
  site.round
  before = site.descriptors.values.max
  ROUNDS.times { |number| site.round || warn("round #{number}: #{site.wrong.last}") }
  after = site.descriptors.values.max
  site.finish
  warn site.mistakes.first(20), site.wrong.first(20), "descriptors: #{site.descriptors}, ends: #{site.ends}"
  check.show("kills (seed #{seed})", ROUNDS)
  check.show("clients that ended with a killed worker", site.ends.values.sum)
  check.at_most("clients that the server has closed", site.ends.sum { |reason, count| reason.match?(/\A\d/) ? count : 0 }, 0)
  check.show("messages received", site.received)
  check.at_most("messages lost, repeated, out of order or wrong: clients", site.mistakes.size, 0)
  check.at_most("rounds after which a connection had no owner or several", site.wrong.size, 0)
  check.at_most("descriptors of the fullest process, more than before", after - before, MORE)
  check.at_most("processes left at the end", site.end!, 0)
end
