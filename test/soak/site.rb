# frozen_string_literal: true

require "json"
require "set"
require "socket"
require_relative "files"
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
      OPTIONS = %w[-e production --early-hints --compress --compress-min-bytes 512 --public-dir public --sendfile-root files --temp-dir temp
                   --body-memory-bytes 32k --response-memory-bytes 64k --shutdown-timeout 15
                   --access-log access.log --access-log-format json].freeze

      # Few heaps, as is common for Ruby applications: with one heap for each thread most of the memory would be free space
      # in them.
      ENVIRONMENT = { "MALLOC_ARENA_MAX" => "2" }.freeze

      # Longest wait for a response, on a machine that does other work too, before it counts as lost.
      PATIENCE = 60

      attr_reader :server

      # +limit+: number of descriptors for each process.
      def initialize(*options, limit: nil, environment: {})
        @server = Test::ServerProcess.new(RACKUP, *OPTIONS, *options, environment: ENVIRONMENT.merge(environment))
        @options = options
        @limit = limit
        @taken = Set.new
        @lock = Mutex.new
        @scarce = 0
        %w[public files temp].each { |name| Dir.mkdir(server.path(name)) }
        Files.write(server)
      end

      # Returns true if descriptors may run out.
      def limited? = !@limit.nil?

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

      # Returns true if the configured number of workers serves.
      def whole?
        wanted = @options[@options.index("-w") + 1].to_i
        server.stdout.scan(/worker \d+ booted/).size == server.stderr.scan("ended unexpectedly").size + wanted
      end

      # --- causes of a loss

      # Records that the connections of these clients, each "ADDRESS:PORT", end with a process that is killed.
      def take(clients)
        @last_kill = monotonic
        @lock.synchronize { @taken.merge(clients) }
      end

      # Returns true if a process was killed at +time+ or later.
      def killed_since?(time) = @last_kill && @last_kill > time

      def taken?(client) = @lock.synchronize { @taken.include?(client) }

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
      def broken_log_lines = lines("access.log").reject { |line| JSON.parse(line) rescue false } # rubocop:disable Style/RescueModifier

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
