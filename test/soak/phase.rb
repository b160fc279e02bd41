# frozen_string_literal: true

require_relative "crowd"
require_relative "killer"
require_relative "peak"
require_relative "remains"

module Fairlead
  module Soak
    # One server from its start to its end: warm-up, first inspection, load, second inspection, end.
    class Phase
      # Number of clients of each kind before the first inspection.
      WARM_UP = 3

      # Seconds between two kills.
      PAUSE = (1.5..4.0)

      # +share+: its part of the time. +kills+: true to kill workers. +shares+ as in Crowd, +options+ and +limit+ as in Site.
      Plan = Struct.new(:name, :share, :options, :limit, :kills, :shares, :crowd, :environment, keyword_init: true)

      # Numbers of passed and failed checks.
      attr_reader :passed, :failed

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
        compare(before) if @site.running?
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
        Remains.of(@site) if @site.running?
      end

      def put_under_load(seconds)
        load = crowd(first: 1_000_000)
        peak = Peak.new(@site)
        killer = peak.watch { disturb { load.run(seconds) } }
        tell(load, killer)
        check("memory at most: #{peak.memory} MiB", peak.modest?, "more than #{Peak::MOST}")
      end

      def disturb(&load)
        return load.call && nil unless @plan.kills

        Killer.new(@site, Random.new(@seed), PAUSE).tap { |killer| killer.run(&load) }
      end

      def tell(load, killer, name = "load")
        puts "#{name}: #{load.ledger.kinds.sum { |kind| load.ledger.count(kind) }} clients#{", #{killer.count} workers killed" if killer}"
        puts load.ledger.lines
        load.ledger.kinds.each { |kind| count(!load.ledger.failed?(kind)) }
      end

      def compare(before)
        puts "left over (fullest process, after the warm-up and at the end):"
        Remains.of(@site).compared(before).each do |name, was, is, right|
          puts format("  %-6s %-12s %s, %s", right ? "ok" : "FAILED", name, was, is)
          count(right)
        end
      end

      def finish
        return check("the server", false, "it has ended by itself: #{@site.server.status}") unless @site.running?

        status = @site.server.stop(:TERM, seconds: Site::PATIENCE)
        check("exit status", status.success?, status.inspect)
        check("the application's complaints", @site.violations.empty?, @site.violations.tally.first(10))
        check("the server's own mistakes", @site.own_mistakes.empty?, @site.own_mistakes.tally.first(10))
        check("lines of the access log", @site.broken_log_lines.empty?, @site.broken_log_lines.first(3))
        check("temporary files", Dir.empty?(@site.server.path("temp")), Dir.children(@site.server.path("temp")))
      rescue Test::Waiting::Expired => e
        check("the end", false, e.message)
      end

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
