# frozen_string_literal: true

module Fairlead
  module Control
    class Tool
      # The output of `fairlead ctl` for people, made from the control server's output for programs.
      module Screen
        COLUMNS = %w[worker pid generation state requests busy threads waiting connections].freeze

        module_function

        # The lines about a status (Control::Report).
        def status(status)
          [headline(status), *pause(status["pause"]), *restart(status["restart"]), "listening on #{status["addresses"].join(", ")}",
           *certificates(status["acme"]), *memory(status["cgroup"]), *processes(status)]
        end

        def headline(status)
          "fairlead #{status["version"]} (pid #{status["pid"]}): #{status["state"]}, generation #{status["generation"]}, " \
            "running since #{status["started_at"]}"
        end

        def pause(pause)
          return [] unless pause

          ["paused: new requests wait for up to #{pause["timeout"]} s; the pause ends in #{pause["left"].ceil} s at the latest"]
        end

        def restart(restart)
          return [] unless restart

          reason = restart["error"].to_s.lines(chomp: true).map { |line| "  #{line}" }
          ["#{restart["kind"]} restart at #{restart["at"]}: #{restart["state"]}", *reason]
        end

        def certificates(orders)
          (orders || []).map do |order|
            expiry = order["expires_at"] ? "valid until #{order["expires_at"]}" : "not there yet"
            failure = "; #{order["failures"]} failed: #{order["error"]}" if order["error"]
            "certificate for #{order["hosts"].join(", ")}: #{expiry}, next order at #{order["next_attempt_at"] || "once"}#{failure}"
          end
        end

        def memory(cgroup)
          return [] unless cgroup

          used, limit = cgroup.values_at("memory_bytes", "memory_max_bytes").map { |bytes| "#{bytes >> 20} MiB" if bytes }
          ["memory of the control group: #{used}#{" of #{limit}" if limit}"]
        end

        def processes(status)
          return [pool(status["counters"])] if status["workers"].zero?

          rows = status["worker_status"].map { |worker| row(worker) }
          ["#{status["worker_status"].count { |worker| worker["booted"] }} of #{status["workers"]} workers serve", *recycled(status["recycled"]),
           *reforked(status["refork"]), *table([COLUMNS, *rows])]
        end

        def recycled(counts)
          counts = (counts || {}).reject { |_, count| count.zero? }
          ["recycled workers: #{counts.map { |reason, count| "#{count} for #{reason}" }.join(", ")}"] if counts.any?
        end

        # The effect of the last automatic refork.
        def reforked(refork)
          before, after = refork&.values_at("memory_before", "memory_after")&.map { |bytes| bytes && (bytes >> 20) }
          ["automatic reforks: #{refork["automatic"]}; the last one: #{before} MiB before, #{after} MiB after"] if after
        end

        def pool(counters)
          return "not serving yet" unless counters

          "#{counters["requests"]} requests, #{counters["busy_threads"]} of #{counters["threads"]} threads busy, #{counters["queued"]} waiting, " \
            "#{counters["connections"]} connections"
        end

        def row(worker)
          counters = worker["counters"] || {}
          state = worker["booted"] ? "serving" : "booting"
          state = "ending" if worker["ending"]
          [*worker.values_at("index", "pid", "generation"), state,
           *counters.values_at("requests", "busy_threads", "threads", "queued", "connections")]
        end

        # Names and values, one per line: { "a" => { "b" => 1 } } as "a.b  1".
        def values(hash) = table(flatten(hash))

        # The lines about the threads of all processes.
        def backtraces(processes)
          processes.flat_map do |process|
            name = [("worker #{process["worker"]}" if process["worker"]), "pid #{process["pid"]}"].compact.join(", ")
            ["--- #{name}#{": no answer" unless process["threads"]}", *process["threads"]&.flat_map { |thread| thread_lines(thread) }]
          end
        end

        def thread_lines(thread)
          ["#{thread["name"]} (#{thread["status"]})#{": #{thread["request"]}" if thread["request"]}",
           *thread["backtrace"].map { |line| "  #{line}" }, ""]
        end

        def flatten(value, name = nil)
          case value
          when Hash then value.flat_map { |key, part| flatten(part, [name, key].compact.join(".")) }
          when Array then value.each_with_index.flat_map { |part, index| flatten(part, "#{name}.#{index}") }
          else [[name, value]]
          end
        end

        def table(rows)
          rows = rows.map { |row| row.map(&:to_s) }
          widths = rows.transpose.map { |column| column.map(&:length).max }
          rows.map { |row| row.zip(widths).map { |text, width| text.ljust(width) }.join("  ").rstrip }
        end
      end
    end
  end
end
