# frozen_string_literal: true

require "json"
require "set"
require_relative "../../lib/fairlead"
require_relative "../support/http_client"
require_relative "../support/processes"
require_relative "../support/restarts"
require_relative "../support/server_process"

module Fairlead
  module Soak
    # A server under load, with processes that are killed, stopped and sent signals at random times. After each round it must
    # be whole again: the configured workers serve, and there is no other process, no zombie and no additional descriptor.
    # Only requests in a killed or stopped worker may fail.
    class Faults
      include Test::Waiting

      WORKERS = 2
      TOKEN = "s3cret"
      FLAGS = ["-w", WORKERS, "-t", 2, "--control-url", "tcp://127.0.0.1:0", "--control-token", TOKEN, "--state", "server.state",
               "--access-log", "access.log"].freeze
      CONFIGURATION = <<~RUBY
        worker_timeout 2
        worker_boot_timeout 10
        shutdown_timeout 2
        load_timeout 10 if respond_to?(:load_timeout)
        worker_settle_time 0.2 if respond_to?(:worker_settle_time)
      RUBY

      # Number of clients, and the pause of each between two requests, in seconds.
      CLIENTS = 4
      THINKING = 0.01

      # Longest time for the server to become whole again, in seconds, and the time for which it must stay so.
      PATIENCE = 60
      STABLE = 0.3

      # Duration of a stop, in seconds: too short for any timeout. Other stopped processes are never continued.
      HALT = 0.7

      # Supervisor's descriptors per worker, and the allowed excess. A leak exceeds it after some rounds.
      OF_WORKER = 6
      MORE = 16

      # Length of the recorded story.
      STORY = 40

      # Random acts, each as often as it occurs here.
      ACTS = %i[kill_worker kill_worker kill_spawner halt_worker stop_worker halt_spawner stop_spawner
                phased hot refork count hang_up phased hot].freeze

      # Problems, as texts; number of requests with a response; counts of the acts; the seed.
      attr_reader :problems, :answered, :acts, :seed

      # The last acts, each with its time and the processes, for the search for a cause.
      attr_reader :story

      def initialize(seed: Random.new_seed % (1 << 32))
        @seed = seed
        @random = Random.new(seed)
        @problems = []
        @story = []
        @acts = Hash.new(0)
        @taken = Hash.new { |taken, pid| taken[pid] = Set.new }
        @gone = []
        @lost = []
        @lock = Mutex.new
        @answered = @version = 0
        @resumed = {}
      end

      # Yields after each round. Returns the problems; after the first one there is no further round.
      def run(rounds)
        start
        under_load do
          rounds.times do |round|
            play
            look(round)
            yield round if block_given?
            break if problems.any?
          end
        end
        finish if problems.empty?
        problems
      ensure
        @log = @server.log
        @server.destroy
      end

      # The server's output, for the search for a cause.
      attr_reader :log

      private

      def start
        app = Test::Restarts::VERSIONED.sub("run ->(_env) {", "run ->(_env) { sleep 0.002;")
        @server = Test::ServerProcess.new(app, *FLAGS, files: { "version" => "0", "config/fairlead.rb" => CONFIGURATION }).start
        wait_until("a whole server", seconds: PATIENCE) { whole? }
        %i[phased hot].each { |act| perform(act) && wait_until("a whole server", seconds: PATIENCE) { whole? } }
        @descriptors = Test::Processes.descriptors(@server.pid)
      end

      # --- faults

      # Addresses are reused: only the connections of a process from this round or the previous one explain a loss. A stopped
      # process can exist for many rounds.
      def play
        @lock.synchronize do
          @gone.each { |pid| @taken.delete(pid) }
          @gone = @taken.keys.reject { |pid| Test::Processes.alive?(pid) }
        end
        (1 + @random.rand(4)).times do
          let(@random.rand(0.3))
          perform(ACTS.sample(random: @random))
        end
      ensure
        @resumed.each_value(&:join).clear
      end

      def perform(act)
        @acts[act] += 1
        note(act, "workers #{@server.worker_pids}, spawner #{@server.spawner_pid}")
        case act
        when :kill_worker then hit(@server.worker_pids) { |pid| Process.kill(:KILL, pid) }
        when :kill_spawner then hit([*@server.spawner_pid]) { |pid| Process.kill(:KILL, pid) }
        when :stop_worker then hit(@server.worker_pids)
        when :stop_spawner then hit([*@server.spawner_pid])
        when :halt_worker then hit(running(@server.worker_pids)) { |pid| resume_later(pid) }
        when :halt_spawner then hit(running([*@server.spawner_pid])) { |pid| resume_later(pid) }
        when :count then @server.signal((@more = !@more) ? :TTIN : :TTOU)
        else restart(act)
        end
      end

      def restart(act)
        @server.write("version", (@version += 1).to_s) unless act == :hang_up
        @server.signal({ phased: :USR1, hot: :USR2, refork: :URG, hang_up: :HUP }.fetch(act))
      end

      # Stops one of the processes, records its requests, and yields its id. Excludes processes that are about to continue:
      # they could take more requests between the two.
      def hit(pids)
        pid = pids.reject { |id| @resumed[id]&.alive? }.sample(random: @random) or return
        Process.kill(:STOP, pid)
        wait_until("process #{pid} to stop") { Test::Processes.halted?(pid) }
        clients = Test::Processes.clients(pid, @server.port)
        note("stopped", pid, *clients)
        @lock.synchronize { @taken[pid].merge(clients) }
        yield pid if block_given?
      rescue Errno::ESRCH, Errno::ENOENT
        nil # it has ended by itself
      end

      # Without the stopped ones, which are never continued.
      def running(pids) = pids.reject { |pid| Test::Processes.halted?(pid) }

      def resume_later(pid)
        @resumed[pid] = Thread.new do
          let(HALT)
          Process.kill(:CONT, pid)
        rescue Errno::ESRCH
          nil
        end
      end

      def note(*words)
        @lock.synchronize do
          @story << [Time.now.strftime("%T.%L"), *words].join(" ")
          @story.shift if @story.size > STORY
        end
      end

      def let(seconds)
        over = monotonic + seconds
        wait_until("some time") { monotonic > over }
      end

      # --- load

      def under_load
        over = false
        clients = Array.new(CLIENTS) { Thread.new { request && sleep(THINKING) until over } }
        yield
      rescue Test::Waiting::Expired => e
        problems << e.message
      ensure
        over = true
        clients&.each(&:join)
        check_losses
      end

      # Sends a request on a new connection; returns true.
      def request
        socket = TCPSocket.new("127.0.0.1", @server.port)
        client = Test::HttpClient.new(socket, seconds: PATIENCE)
        address = "127.0.0.1:#{socket.local_address.ip_port}"
        status = client.get("/", "connection" => "close").status
        status == 200 ? @lock.synchronize { @answered += 1 } : lose(address, "status #{status}")
        true
      rescue SystemCallError, Test::HttpClient::CutOff, Test::Waiting::Expired => e
        lose(address, e.inspect)
        true
      ensure
        socket&.close
      end

      def lose(address, reason)
        note("lost", address, reason)
        @lock.synchronize { @lost << [address, reason] }
      end

      # --- conditions after each round

      def look(round)
        wait_until("a whole server after round #{round}", seconds: PATIENCE) { stays_whole? || !@server.running? }
        check("round #{round}: the server has ended: #{@server.status}") { @server.running? }
        check("round #{round}: zombies #{zombies}") { patiently { zombies.empty? } }
        check("round #{round}: #{descriptors} descriptors, #{@descriptors} at first") { patiently { descriptors <= permitted } }
        check_losses
      rescue Test::Waiting::Expired => e
        problems << "#{e.message}: #{picture}"
      end

      def check(text) = yield || problems << text

      def patiently(&condition)
        wait_until("the condition", &condition)
      rescue Test::Waiting::Expired
        false
      end

      def check_losses
        lost = @lock.synchronize { @lost.slice!(0..).reject { |address, _| @taken.each_value.any? { |clients| clients.include?(address) } } }
        problems.concat(lost.map { |address, reason| "a request of #{address || "a new connection"} was lost: #{reason}" })
      end

      def stays_whole?
        since = monotonic
        sleep(PAUSE) while (whole = whole?) && monotonic < since + STABLE
        whole
      end

      # Returns true if the configured number of workers serves, there is one spawner and no other process, and no restart is
      # in progress.
      def whole?
        status = self.status or return false
        workers = @server.worker_pids
        @wanted = status["workers"]
        status["state"] == "ready" && status.dig("restart", "state") != "running" && workers.size == @wanted &&
          status["worker_status"].count { |worker| worker["booted"] } == @wanted &&
          Test::Processes.group(@server.pid).sort == [@server.pid, *@server.spawner_pid, *workers].sort && !@server.spawner_pid.nil?
      end

      def status
        url = Control::StateFile.read(@server.path("server.state"))["control_url"] or return
        socket = Socket.tcp("127.0.0.1", Integer(url[/\d+\z/], 10), connect_timeout: 5)
        JSON.parse(Test::HttpClient.new(socket, seconds: 5).get("/status?token=#{TOKEN}").body)
      rescue SystemCallError, JSON::ParserError, Test::HttpClient::CutOff, Test::Waiting::Expired
        nil # the server is starting again
      ensure
        socket&.close
      end

      def descriptors = Test::Processes.descriptors(@server.pid)

      def permitted = @descriptors + ([@wanted - WORKERS, 0].max * OF_WORKER) + MORE

      def zombies
        Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
          Test::Processes.group_of(pid) == @server.pid && Test::Processes.state(pid) == "Z"
        end
      end

      # The processes and the server's own status, as text.
      def picture
        processes = Test::Processes.group(@server.pid).map { |pid| "#{pid} #{Test::Processes.state(pid)} #{Test::Processes.title(pid)}" }
        "#{processes.inspect}, #{status.inspect}"
      rescue SystemCallError => e
        e.message
      end

      # --- the end

      # Asserts that new code can still be loaded, and that the end leaves nothing behind.
      def finish
        @server.write("version", "last")
        @server.signal(:USR2)
        check("the last restart brings in no new code") { patiently { status&.dig("restart", "state") == "done" && last? } }
        status = @server.stop(seconds: PATIENCE)
        check("exit status #{status.inspect}") { status.success? }
        check("processes are left: #{picture}") { patiently { Test::Processes.group(@server.pid).empty? } }
      end

      def last?
        Array.new(4) do
          client = Test::HttpClient.new(TCPSocket.new("127.0.0.1", @server.port))
          client.get("/", "connection" => "close").body.split.first.tap { client.close }
        end.uniq == ["last"]
      end
    end
  end
end
