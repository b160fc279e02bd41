# frozen_string_literal: true

require_relative "causes"
require_relative "crowd"
require_relative "disturber"
require_relative "peak"
require_relative "remains"
require_relative "watch"

module Fairlead
  module Soak
    # One server from its start to its end: warm-up, first inspection, load in spells with a look at the idle server after each,
    # second inspection, end.
    class Phase
      # Number of clients of each kind before the first inspection.
      WARM_UP = 3

      # Seconds between two acts, in a phase of ten minutes and in a short one.
      PAUSE = (20.0..60.0)
      SHORT_PAUSE = (1.5..4.0)

      # Longest time of load between two looks at the idle server, in seconds.
      SPELL = 60

      # +share+: its part of the time. +acts+: what disturbs the server, as in Disturber. +shares+ as in Crowd, +options+ and +limit+ as
      # in Site.
      Plan = Struct.new(:name, :share, :options, :limit, :acts, :shares, :crowd, :environment, keyword_init: true)

      # Numbers of passed and failed checks.
      attr_reader :passed, :failed

      # Returns true if the run has to end at once.
      def spoiled? = !@site.spoiled.nil?

      # +choice+: returns true for the kinds of clients that take part.
      def initialize(plan, seed, &choice)
        @plan = plan
        @seed = seed
        kinds = Clients::Client.all.select(&choice)
        lots = kinds.flat_map { |kind| [kind] * (plan.shares || {}).fetch(kind, kind.share) }
        @lots = lots.empty? ? kinds : lots
        @passed = @failed = 0
      end

      def run(seconds)
        puts "", "== #{@plan.name}"
        @site = Site.new(*@plan.options, limit: @plan.limit, environment: @plan.environment || {})
        @site.start
        before = warm_up
        put_under_load(seconds) if before
        compare(before) if @site.running? && !@site.spoiled
        finish
        self
      ensure
        keep_log if @failed.positive? || $!
        @site&.server&.destroy
      end

      private

      def crowd(first: 0) = Crowd.new(@site, @seed, @lots, size: @plan.crowd || 24, first: first)

      def warm_up
        warm = crowd
        warm.run(1) { warm.kinds.all? { |kind| warm.ledger.count(kind) >= WARM_UP } }
        tell(warm, nil, "warm-up")
        return unless @site.running?

        Remains.of(@site).tap { look_at_gauges }
      end

      def look_at_gauges
        Test::Waiting.wait_until("the gauges", seconds: Site::PATIENCE) { @gauges = Gauges.of(@site) }
        check("the gauges of the control server", @gauges.missing.empty?, "without #{@gauges.missing.join(", ")}")
      end

      def put_under_load(seconds)
        load = crowd(first: 1_000_000)
        peak = Peak.new(@site)
        watch = Watch.new(@site)
        @disturber = Disturber.new(@site, Random.new(@seed), @plan.acts, pause(seconds)) if @plan.acts
        spells = (seconds / SPELL).ceil
        peak.watch { watch.watch { spells.times { spell(load, seconds / spells) } } }
        tell(load, @disturber)
        check("memory at most: #{peak.memory} MiB", peak.modest?, "more than #{Peak::MOST}")
        check("gauges read #{watch.looks} times", @site.spoiled.nil?, @site.spoiled)
      end

      # Load, and then a moment without any: everything must have ended, and all budgets be full again.
      def spell(load, seconds)
        return if @site.spoiled

        @disturber ? @disturber.run { load.run(seconds) } : load.run(seconds)
        @disturber&.settle
        return unless @site.running? && !@site.spoiled

        left = Remains.left_over(@site, @gauges)
        @site.spoil("gauges of the idle server: #{left.join(", ")}") if left.any?
      end

      # Between two acts: shorter in a shorter phase.
      def pause(seconds)
        first, last = [PAUSE, SHORT_PAUSE].map(&:minmax).transpose
        (seconds / 30).clamp(*first.minmax)..(seconds / 10).clamp(*last.minmax)
      end

      def tell(load, disturber, name = "load")
        puts "#{name}: #{load.ledger.kinds.sum { |kind| load.ledger.count(kind) }} clients#{"; #{disturber}" if disturber}"
        puts load.ledger.lines
        load.ledger.kinds.each { |kind| count(!load.ledger.failed?(kind)) }
      end

      def compare(before)
        puts "left over (fullest process, after the warm-up and at the end):"
        now = Remains.of(@site, before)
        now.compared(before).each do |name, was, is, right|
          puts format("  %-6s %-22s %s, %s", right ? "ok" : "FAILED", name, was, is)
          count(right)
          puts "    new: #{now.new_files(before).join(", ")}" if name == :supervisor_descriptors && !right
        end
      end

      def finish
        return check("the server", false, "it has ended by itself: #{@site.server.status}") unless @site.running?

        status = @site.server.stop(:TERM, seconds: Site::PATIENCE)
        check("exit status", status.success?, status.inspect)
        check("the application's complaints", @site.violations.empty?, @site.violations.tally.first(10))
        check("the server's own mistakes", @site.own_mistakes.empty?, @site.own_mistakes.tally.first(10))
        check("warnings without a cause", (unknown = causes.unknown(@site.server.stderr.lines)).empty?, unknown.first(10))
        check("lines of the access log", @site.broken_log_lines.empty?, @site.broken_log_lines.first(3))
        check("temporary files", Dir.empty?(@site.server.path("temp")), Dir.children(@site.server.path("temp")))
      rescue Test::Waiting::Expired => e
        check("the end", false, e.message)
      end

      def causes = Causes.new(@disturber ? @disturber.acts : {}, limited: @site.limited?, small: @site.small?)

      def check(name, right, facts)
        puts "  #{right ? "ok    " : "FAILED"} #{name}#{": #{facts}" unless right}"
        count(right)
      end

      def count(right) = right ? @passed += 1 : @failed += 1

      # Keeps the end of the log, for the search for a cause.
      def keep_log
        return unless @site

        path = File.join(Dir.tmpdir, "fairlead-soak-#{@plan.name.tr(" ", "-")}-#{@seed}.log")
        File.write(path, @site.server.log)
        puts "  the server's log is in #{path}"
      end
    end
  end
end
