# frozen_string_literal: true

require "json"
require "set"
require "socket"
require_relative "files"
require_relative "../../lib/fairlead"
require_relative "../support/http_client"
require_relative "../support/processes"
require_relative "../support/server_process"

module Fairlead
  module Soak
    # A server under load: the real command in its own folder, the connections that the soak itself has taken from their
    # clients, and the times when it left the server without descriptors.
    class Site
      include Test::Waiting

      RACKUP = <<~RUBY.freeze
        require #{File.join(__dir__, "application").dump}
        Fairlead::Soak::Resources.listen
        run Fairlead::Soak::Application.new
      RUBY
      TOKEN = "s3cret"
      STATE = "server.state"
      OPTIONS = %W[-e production --control-url tcp://127.0.0.1:0 --control-token #{TOKEN} --state #{STATE}
                   --early-hints --compress --compress-min-bytes 512 --public-dir public --sendfile-root files --temp-dir temp
                   --body-memory-bytes 32k --response-memory-bytes 64k --shutdown-timeout 45 --write-timeout 120
                   --drain-spread 1 --access-log access.log --access-log-format json].freeze

      # Few heaps, as is common for Ruby applications: with one heap for each thread most of the memory would be free space
      # in them.
      ENVIRONMENT = { "MALLOC_ARENA_MAX" => "2" }.freeze

      # Longest wait for a response, on a machine that does other work too, before it counts as lost.
      PATIENCE = 60

      # +spoiled+: why the run has to end at once; nil usually.
      attr_reader :server, :spoiled

      # +limit+: number of descriptors for each process.
      def initialize(*options, limit: nil, environment: {})
        @server = Test::ServerProcess.new(RACKUP, *OPTIONS, *options, environment: ENVIRONMENT.merge(environment))
        @options = options
        @limit = limit
        @taken = Set.new
        @killed = []
        @rotations = 0
        @lock = Mutex.new
        @scarce = 0
        %w[public files temp].each { |name| Dir.mkdir(server.path(name)) }
        Files.write(server)
      end

      # Returns true if descriptors may run out.
      def limited? = !@limit.nil?

      # Returns true if the memory for responses may be used up.
      def small? = @options.include?("--response-memory-total-bytes")

      # Returns true if the client of one of these addresses had to leave its memory to others.
      def gave_way?(addresses) = small? && addresses.any? { |address| server.log.include?(" of #{address}: others need its share") }

      def start
        with_limit { server.launch }
        wait_until("the server to be ready", seconds: 3 * PATIENCE) { server.ready? || server.exited? }
        raise "the server ended at once\n#{server.log}" unless server.running?

        self
      end

      def port = @port ||= server.port

      # Processes that serve.
      def serving = server.serving_pids

      def running? = @lock.synchronize { server.running? }

      # Configured number of workers.
      def workers = @options[@options.index("-w") + 1].to_i

      # Returns true if the configured number of workers serves, and no restart is in progress.
      def whole?
        status = self.status or return false
        return false if status["state"] != "ready" || status.dig("restart", "state") == "running"
        return server.serving_pids.size == 1 if workers.zero?

        states = status["worker_status"]
        states.size == workers && states.all? { |worker| worker["booted"] && !worker["ending"] } && serving.size == workers
      end

      # Ends the run.
      def spoil(reason) = @spoiled = [*@spoiled, reason].first

      # --- acts

      # Records that the connections of these clients, each "ADDRESS:PORT", end with the process that is killed.
      def take(clients, pid)
        @last_kill = monotonic
        @last_restart = @last_kill if workers.zero?
        @lock.synchronize do
          @taken.merge(clients)
          @killed << pid
        end
      end

      # Runs the block, which makes processes end that have served everything.
      def restarts
        @last_restart = monotonic
        yield
      end

      # Moves the access log away, and has it opened again.
      def rotate
        File.rename(server.path("access.log"), server.path("access.log.#{@rotations += 1}"))
        server.signal(:HUP)
      end

      # --- causes of a loss

      # Ids of the killed processes.
      def killed = @lock.synchronize { @killed.dup }

      # Returns true if the process of a server without workers was replaced at +time+ or a little earlier: there is no other process for
      # its connections.
      def alone_and_restarted_since?(time) = workers.zero? && @last_restart && @last_restart > time - PATIENCE

      # Returns true if a process was killed at +time+ or later.
      def killed_since?(time) = @last_kill && @last_kill > time

      def taken?(client) = @lock.synchronize { @taken.include?(client) }

      # Returns true if the client could not move from a worker with new code to one with old code: a killed process has made a restart fail.
      def left_behind?(client) = killed.any? && server.stderr.include?("of #{client} cannot migrate: the workers that continue have older code")

      # Marks the time of the block, in which the application holds all descriptors.
      def scarce
        change_scarcity(+1)
        yield
      ensure
        @last_scarce = monotonic
        change_scarcity(-1)
      end

      # Returns true if descriptors had run out at +time+ or later.
      def scarce_since?(time) = @scarce.positive? || (@last_scarce && @last_scarce > time)

      # --- the server's reports

      # Violations that the application has recorded.
      def violations = lines("violations")

      # Invalid lines of the server's access log.
      def broken_log_lines
        names = (1..@rotations).map { |number| "access.log.#{number}" } << "access.log"
        names.flat_map { |name| File.foreach(server.path(name)).reject { |line| JSON.parse(line) rescue false } } # rubocop:disable Style/RescueModifier
      end

      # The state of the server, as the control server tells it; nil if it does not respond.
      def status
        text = control("/status")
        text && JSON.parse(text)
      rescue JSON::ParserError
        nil
      end

      # The body of a response of the control server; nil if there is none, as in a hot restart.
      def control(target)
        url = Control::StateFile.read(server.path(STATE))["control_url"] or return
        socket = Socket.tcp("127.0.0.1", Integer(url[/\d+\z/], 10), connect_timeout: 5)
        answer = Test::HttpClient.new(socket, seconds: 10).get("#{target}?token=#{TOKEN}", "connection" => "close")
        answer.body if answer.status == 200
      rescue SystemCallError, Test::HttpClient::CutOff, Test::Waiting::Expired
        nil
      ensure
        socket&.close
      end

      # Faults that the server has logged.
      def own_mistakes = server.stderr.lines.grep(/\[BUG\]|panicked|Segmentation fault|ruby: \[ASYNC BUG\]|^==\d+==|AddressSanitizer/)

      def lines(name) = File.exist?(server.path(name)) ? File.readlines(server.path(name), chomp: true) : []

      private

      def change_scarcity(by) = @lock.synchronize { @scarce += by }

      # Sets the limit for the child; the soak itself needs more.
      def with_limit
        return yield unless @limit

        before = Process.getrlimit(:NOFILE)
        Process.setrlimit(:NOFILE, @limit, before.last)
        yield
      ensure
        Process.setrlimit(:NOFILE, *before) if before
      end
    end
  end
end
