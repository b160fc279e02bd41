# frozen_string_literal: true

require "json"
require "set"
require "socket"
require_relative "files"
require_relative "../support/processes"
require_relative "../support/server_process"

module Fairlead
  module Soak
    # A server under load: the real command in a folder of its own, which connections have been taken from their clients by
    # what the soak itself did, and when it left the server without descriptors.
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

      # Few heaps, as Ruby applications are often run: with one for each thread most of the memory is what is free in them.
      ENVIRONMENT = { "MALLOC_ARENA_MAX" => "2" }.freeze

      # How long an answer may take on a machine that does other things too, before it counts as lost.
      PATIENCE = 60

      attr_reader :server

      # +limit+: how many descriptors each process may have.
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

      # Whether descriptors may run out.
      def limited? = !@limit.nil?

      def start
        with_limit { server.launch }
        wait_until("the server to be ready", seconds: 3 * PATIENCE) { server.ready? || server.exited? }
        raise "the server ended at once\n#{server.log}" unless server.running?

        self
      end

      def port = @port ||= server.port

      # The processes that serve.
      def serving = server.serving_pids

      def running? = @lock.synchronize { server.running? }

      # Whether as many workers serve as should.
      def whole?
        wanted = @options[@options.index("-w") + 1].to_i
        server.stdout.scan(/worker \d+ booted/).size == server.stderr.scan("ended unexpectedly").size + wanted
      end

      # --- what explains a loss

      # Says that the connections of these clients, each "ADDRESS:PORT", end with a process that is killed.
      def take(clients)
        @last_kill = monotonic
        @lock.synchronize { @taken.merge(clients) }
      end

      # Whether a process was killed at +time+ or later.
      def killed_since?(time) = @last_kill && @last_kill > time

      def taken?(client) = @lock.synchronize { @taken.include?(client) }

      # While the block runs, the application has all descriptors.
      def scarce
        change_scarcity(+1)
        yield
      ensure
        @last_scarce = monotonic
        change_scarcity(-1)
      end

      # Whether descriptors had run out at +time+ or later.
      def scarce_since?(time) = @scarce.positive? || (@last_scarce && @last_scarce > time)

      # --- what the server says of itself

      # What the application has noted that must not be.
      def violations = lines("violations")

      # Lines of its access log that are none.
      def broken_log_lines = lines("access.log").reject { |line| JSON.parse(line) rescue false } # rubocop:disable Style/RescueModifier

      # What went wrong in the server's own eyes.
      def own_mistakes = server.stderr.lines.grep(/\[BUG\]|panicked|Segmentation fault|ruby: \[ASYNC BUG\]|^==\d+==|AddressSanitizer/)

      def lines(name) = File.exist?(server.path(name)) ? File.readlines(server.path(name), chomp: true) : []

      private

      def change_scarcity(by) = @lock.synchronize { @scarce += by }

      # The child inherits it; the soak itself needs more.
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
