# frozen_string_literal: true

module Fairlead
  module Control
    class Tool
      class Top
        # A snapshot of the control server as lines for a terminal.
        module Table
          RUNNING = %w[TIME REQUEST WORKER THREAD].freeze
          WORKERS = %w[WORKER STATE BUSY QUEUED REQ/S REQUESTS CONNS CLIENTS MEMORY PID GEN AGE].freeze

          # The indexes of the columns with text; numbers are aligned at the right.
          TEXTS = { RUNNING => [1], WORKERS => [0, 1] }.freeze

          # Seconds: the times of responses are known from this time on.
          SHORTEST = 0.005

          # Rows for running requests at most, if the terminal is not known.
          SHOWN = 20

          module_function

          # +rows+: the height of the terminal. Workers have priority over more than a few running requests.
          def lines(snapshot, rows: nil) = texts(snapshot, rows).map { |line| plain(line) }

          def texts(snapshot, rows)
            return ["no connection: #{snapshot["failure"]}"] unless snapshot["pid"]

            head = [headline(snapshot), *troubles(snapshot), requests(snapshot), waits(snapshot), threads(snapshot)]
            workers = table(WORKERS, snapshot["processes"].map { |process| worker(process, snapshot) })
            room = rows ? [rows - head.size - workers.size - 5, 3].max : SHOWN
            [*head, "", *running(snapshot, room), "", *workers, "", refusals(snapshot)]
          end

          def headline(snapshot)
            "fairlead #{snapshot["version"]}  #{snapshot["state"]}  pid #{snapshot["pid"]}  up #{age(snapshot["uptime"])}  " \
              "#{snapshot["addresses"].join(" ")}"
          end

          def troubles(snapshot)
            [("NO CONNECTION: #{plain(snapshot["failure"])}" if snapshot["failure"]), *Screen.pause(snapshot["pause"]),
             restart(snapshot["restart"] || {})].compact
          end

          def restart(restart)
            case restart["state"]
            when "running" then "a #{restart["kind"]} restart is running"
            when "failed" then plain("the last #{restart["kind"]} restart has failed: #{restart["error"].to_s.lines(chomp: true).first}")
            end
          end

          def requests(snapshot)
            median, most, nearly_all = snapshot["percentiles"].map { |seconds| "#{"< " if seconds == SHORTEST}#{time(seconds)}" }
            "#{number(snapshot["point"]&.at(1) || 0)} requests/s   latency: median #{median}, 95 % #{most}, 99 % #{nearly_all}"
          end

          def waits(snapshot)
            queue, room, lock = (snapshot["point"] || []).drop(5).map { |seconds| time(seconds) }
            "average wait: queue #{queue || "-"}, waiting room #{room || "-"}, lock #{lock || "-"}"
          end

          def threads(snapshot)
            sum = ->(key) { snapshot["processes"].sum { |process| process[key] || 0 } }
            most = snapshot["processes"].count { |process| process["state"] == "serving" } * snapshot["max_threads"]
            room = snapshot.dig("waiting_room", "waiting")
            "#{sum["busy_threads"]} of #{most} threads busy   #{sum["queued"] + room.to_i} waiting#{" (#{room} in the waiting room)" if room}   " \
              "#{sum["connections"]} connections   #{sum["clients"]} clients#{"   #{bytes(snapshot["memory"])}" if snapshot["memory"]}"
          end

          def running(snapshot, room)
            all = snapshot["running"]
            return ["no request is running"] if all.empty?

            rows = all.first(room).map { |one| [time(one["seconds"]), plain(one["request"]), one["worker"], one["thread"]] }
            more = all.size - rows.size
            [*table(RUNNING, rows), *("and #{more} more" if more.positive?)]
          end

          def worker(process, snapshot)
            most = snapshot["max_threads"]
            full = process["state"] == "serving" && process["busy_threads"] >= most
            [snapshot["workers"].zero? ? "-" : process["index"], full ? "all busy" : process["state"], "#{process["busy_threads"]} of #{most}",
             process["queued"], number(process["rate"]), process["requests"], process["connections"], process["clients"],
             bytes(process["memory"]), process["pid"], process["generation"], age(process["uptime"])]
          end

          def refusals(snapshot)
            counted = snapshot["refusals"].select { |_, count| count.positive? }
            "refused by the server: #{counted.empty? ? "nothing" : counted.map { |reason, count| "#{reason.tr("_", " ")} #{count}" }.join(", ")}"
          end

          def table(names, rows)
            rows = [names, *rows.map { |row| row.map(&:to_s) }]
            columns = rows.transpose.each_with_index.map { |column, i| aligned(column, TEXTS[names].include?(i)) }
            columns.transpose.map { |row| row.join("  ").rstrip }
          end

          def aligned(column, is_text)
            width = column.map(&:length).max
            column.map { |text| is_text ? text.ljust(width) : text.rjust(width) }
          end

          # Without characters that a terminal would obey.
          def plain(text) = SystemText.shown(text).gsub(/[[:cntrl:]]/, "?")

          def number(value) = value.between?(0.05, 9.95) ? format("%.1f", value) : value.round.to_s

          def time(seconds)
            return "-" unless seconds
            return "0" if seconds.zero?
            return "#{(seconds * 1e6).round} us" if seconds < 0.001
            return format(seconds < 0.01 ? "%.1f ms" : "%.0f ms", seconds * 1000) if seconds < 1

            seconds < 100 ? format("%.1f s", seconds) : age(seconds)
          end

          def age(seconds)
            minutes, seconds = seconds.to_i.divmod(60)
            hours, minutes = minutes.divmod(60)
            days, hours = hours.divmod(24)
            return "#{days} d #{hours} h" if days.positive?
            return "#{hours} h #{minutes} min" if hours.positive?

            minutes.positive? ? "#{minutes} min" : "#{seconds} s"
          end

          def bytes(number)
            return "-" unless number

            number >= 1024**3 ? format("%.1f GB", number.fdiv(1024**3)) : "#{(number / 1024.0 / 1024).round} MB"
          end
        end
      end
    end
  end
end
