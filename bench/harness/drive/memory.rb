# frozen_string_literal: true

require_relative "pages"

module Bench
  module Drive
    # The memory of a server (PSS of all its processes) after its start and first response, and after more and more requests.
    class Memory
      # Names of the servers.
      SERVERS = %w[fairlead fairlead-warm-up fairlead-refork puma-no-preload puma-preload puma-warmup puma-fork-worker].freeze

      STEPS = [0, 200, 2000, 20_000].freeze

      # Memory is read once processes and memory have stayed the same for so many seconds, within the next ones. Fairlead begins to collect
      # garbage after five seconds without load.
      STEADY = 8
      DEADLINE = 60

      # Share of the memory that may change meanwhile, and of the requests that may fail.
      TOLERANCE = 0.01

      # pages: a list of Pages::Page. form: the path of a page with the form, if they need its Session.
      def initialize(pages:, form: nil, steps: STEPS, steady: STEADY)
        @pages = pages
        @form = form
        @steps = steps
        @steady = steady
      end

      def units
        { many: "requests", one: "request" }
      end

      def speaks?(_dialect, _shape)
        ProcessGroup.readable?
      end

      def missing
        "there is no /proc/PID/smaps_rollup" unless ProcessGroup.readable?
      end

      # None: every request counts.
      def warm_up(_target, _seconds); end

      def measure(target, _seconds)
        sent = 0
        errors = Hash.new(0)
        processes = target.running.group.pids.size
        found = @steps.to_h do |step|
          load(target, step - sent).each { |kind, count| errors[kind] += count }
          sent = step
          [step, in_mib(steady(target.running.group, processes))]
        end
        Measurement.new(requests: sent, errors: errors, pss: found, memory_mib: found.values.last["total"])
      end

      # On a busy machine SQLite gives up a few of the requests that write.
      def problem(found)
        "some requests failed: #{found.errors}" if found.error_count > found.requests * TOLERANCE
      end

      def summary(found)
        found.pss.map { |step, parts| format("%d: %.1f MiB", step, parts["total"]) }.join("  ")
      end

      private

      # Returns the errors.
      def load(target, count)
        return {} if count.zero?

        session = Session.new(target.running.url(@form)) if @form
        file = target.running.site.write("requests", @pages.map { |page| page.line(session) }.join("\n"))
        all, = target.load_tool.mix(target.url, file: file, fields: session ? session.fields : {}, connections: target.connections,
                                                seconds: nil, requests: count)
        all.errors
      end

      # A server that replaces its processes, or collects garbage after the load, comes to an end with it first. +processes+: their number at
      # the start; while some are replaced, there are more.
      def steady(group, processes)
        deadline = now + DEADLINE
        before = look(group)
        loop do
          sleep @steady
          after = look(group)
          return after.last if same?(before, after) && after.first.size <= processes
          raise Error, "its processes and its memory go on changing" if now > deadline

          before = after
        end
      end

      def look(group) = [group.pids.sort, group.memory_by_role]

      def same?(before, after)
        totals = [before, after].map { |_, memory| memory && memory["total"] }
        before.first == after.first && totals.all? && (totals.first - totals.last).abs < totals.first * TOLERANCE
      end

      def in_mib(parts) = parts.transform_values { |kib| (kib / 1024.0).round(1) }

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
