# frozen_string_literal: true

module Bench
  # The Markdown page of one result: the question, the machine, a table for each shape, and remarks.
  class Report
    # metric => [heading, formatter of a cell (among the cells of its shape)]; %{many} and %{one} are the scenario's
    # units.
    METRICS = {
      rate: ["%{many}/s", ->(cell, _) { number(cell.rate) }],
      spread: ["min–max", ->(cell, _) { cell.rates.map { |rate| number(rate) }.join("–") }],
      vs_puma: ["÷ Puma", ->(cell, cells) { ratio(cell.times(cells["puma"])) }],
      vs_fairlead: ["÷ Fairlead", ->(cell, cells) { ratio(cell.times(cells["fairlead"])) }],
      vs_http1: ["÷ HTTP/1.1", ->(cell, cells) { ratio(cell.times(cells["fairlead-http1"])) }],
      vs_plain: ["÷ plain", ->(cell, cells) { ratio(cell.times(cells["fairlead-plain"])) }],
      p50: ["p50 ms", ->(cell, _) { milliseconds(cell.percentile(50)) }],
      p95: ["p95 ms", ->(cell, _) { milliseconds(cell.percentile(95)) }],
      p99: ["p99 ms", ->(cell, _) { milliseconds(cell.percentile(99)) }],
      p50c: ["p50 corrected ms", ->(cell, _) { milliseconds(cell.median { |measurement| measurement.corrected_percentile(50) }) }],
      p95c: ["p95 corrected ms", ->(cell, _) { milliseconds(cell.median { |measurement| measurement.corrected_percentile(95) }) }],
      p99c: ["p99 corrected ms", ->(cell, _) { milliseconds(cell.median { |measurement| measurement.corrected_percentile(99) }) }],
      max: ["max ms", ->(cell, _) { milliseconds(cell.percentile(100)) }],
      last: ["ms to the last client", ->(cell, _) { milliseconds(cell.percentile(100)) }],
      last_vs_fairlead: ["÷ Fairlead's", ->(cell, cells) { ratio(cell.times(cells["fairlead-cable"], :longest)) }],
      p95_vs_fairlead: ["÷ Fairlead's", ->(cell, cells) { ratio(cell.times(cells["fairlead-cable"], :p95)) }],
      fairness: ["least/most", ->(cell, _) { ratio(cell.median(&:least_over_most)) }],
      throughput: ["MB/s", ->(cell, _) { number(cell.median(&:megabytes_per_second)) }],
      cpu: ["CPU µs/%{one}", ->(cell, _) { number(cell.median(&:cpu_us)) }],
      cpu_vs_nginx: ["CPU ÷ nginx", ->(cell, cells) { ratio(cell.times(cells["nginx"], :cpu_us)) }],
      vs_cable: ["÷ Action Cable", ->(cell, cells) { ratio(cell.times(cells["puma-cable"])) }],
      vs_nginx: ["÷ nginx", ->(cell, cells) { ratio(cell.times(cells["nginx"])) }],
      vs_calm: ["÷ undisturbed", ->(cell, cells) { ratio((cell.times(cells["fairlead-public"]) if cell.server == "fairlead-busy")) }],
      many_share: ["share of the connection with many streams", ->(cell, _) { ratio(cell.median { |measurement| measurement.share_of_class(0) }) }],
      single_share: ["share of each connection with one", ->(cell, _) { ratio(cell.median { |measurement| measurement.share_of_class(1) }) }],
      single_p50: ["its p50 ms", ->(cell, _) { milliseconds(cell.median { |measurement| measurement.percentile_of_class(1, 50) }) }],
      single_p99: ["its p99 ms", ->(cell, _) { milliseconds(cell.median { |measurement| measurement.percentile_of_class(1, 99) }) }],
      streams: ["Jain of the streams", ->(cell, _) { ratio(cell.median(&:stream_jain)) }],
      shares: ["least–most ÷ mean", ->(cell, _) { cell.shares.minmax.map { |share| ratio(share) }.join("–") }],
      short: ["short/s meanwhile", ->(cell, _) { number(cell.median(&:short_rate)) }],
      short_p99: ["its p99 ms", ->(cell, _) { milliseconds(cell.median(&:short_p99)) }],
      short_vs_puma: ["÷ Puma's", ->(cell, cells) { ratio(cell.times(cells["puma"], :short_rate)) }],
      predicted_p95: ["predicted", ->(cell, _) { predicted(cell, 95) }],
      predicted_p99: ["predicted", ->(cell, _) { predicted(cell, 99) }],
      p99_vs_puma: ["÷ Puma's", ->(cell, cells) { ratio(cell.times(cells["puma"], :p99)) }],
      memory_vs_puma: ["÷ Puma's", ->(cell, cells) { ratio(cell.times(cells["puma"], :memory_mib)) }],
      p95_vs_puma: ["÷ Puma's", ->(cell, cells) { ratio(cell.times(cells["puma"], :p95)) }],
      beside_rate: ["%{beside}/s", ->(cell, _) { number(cell.beside&.rate) }],
      beside_vs_puma: ["÷ Puma", ->(cell, cells) { ratio(cell.times(cells["puma"], :beside_rate)) }],
      beside_p50: ["its p50 ms", ->(cell, _) { milliseconds(cell.beside&.percentile(50)) }],
      beside_p99: ["its p99 ms", ->(cell, _) { milliseconds(cell.beside&.percentile(99)) }],
      beside_short: ["%{many}/s meanwhile", ->(cell, _) { number(cell.median(&:beside_short)) }],
      start: ["ms to the first response", ->(cell, _) { number(cell.median(&:start_ms)) }],
      starts: ["min–max", ->(cell, _) { cell.measurements.flat_map(&:starts_ms).minmax.map { |ms| number(ms) }.join("–") }],
      start_vs_puma: ["÷ Puma", ->(cell, cells) { ratio(cell.times(cells["puma"], :start_ms)) }],
      capacity: ["capacity/s", ->(cell, _) { number(cell.median(&:capacity)) }],
      useful: ["useful ÷ capacity", ->(cell, _) { ratio(cell.median(&:useful_share)) }],
      good_p50: ["p50 of good ones ms", ->(cell, _) { milliseconds(cell.median(&:good_p50)) }],
      good_p99: ["p99 of good ones ms", ->(cell, _) { milliseconds(cell.median(&:good_p99)) }],
      refused: ["refused", ->(cell, _) { number(cell.median(&:refused_count)) }],
      refused_p99: ["p99 of refusals ms", ->(cell, _) { milliseconds(cell.median(&:refused_p99)) }],
      failed: ["without a response", ->(cell, _) { number(cell.median(&:failed_count)) }],
      asked: ["requests", ->(cell, _) { number(cell.median(&:asked)) }],
      late: ["late", ->(cell, _) { number(cell.median(&:late)) }],
      lost: ["lost", ->(cell, _) { number(cell.median(&:lost)) }],
      beside_useful: ["%{beside}: useful ÷ capacity", ->(cell, _) { ratio(cell.beside&.median(&:useful_share)) }],
      beside_refused: ["%{beside}: refused", ->(cell, _) { number(cell.beside&.median(&:refused_count)) }],
      stall_queued: ["queued", ->(cell, _) { number(cell.median { |found| found.stall["queued"] }) }],
      stall_first: ["ms to the first useful response", ->(cell, _) { milliseconds(cell.median { |found| found.stall["first_ms"] }) }],
      stall_served: ["served", ->(cell, _) { number(cell.median { |found| found.stall["served"] }) }],
      stall_refused: ["refused", ->(cell, _) { number(cell.median { |found| found.stall["refused"] }) }],
      socket: ["KiB/socket", ->(cell, _) { number(cell.median(&:socket_kib)) }],
      idle_connection: ["KiB/idle connection", ->(cell, _) { number(cell.median(&:socket_kib)) }],
      opening: ["s to open all", ->(cell, _) { ratio(cell.median(&:opening)) }],
      memory: ["PSS MiB", ->(cell, _) { number(cell.median(&:memory_mib)) }],
      pss_start: ["PSS MiB after 0 requests", ->(cell, _) { number(cell.median { |found| found.pss_after(0) }) }],
      pss_few: ["after 200", ->(cell, _) { number(cell.median { |found| found.pss_after(200) }) }],
      pss_warm: ["after 2 000", ->(cell, _) { number(cell.median { |found| found.pss_after(2000) }) }],
      pss_warm_vs_puma: ["÷ puma-preload", ->(cell, cells) { ratio(pss_times(cell, cells["puma-preload"], 2000)) }],
      pss_warm_vs_warmup: ["÷ puma-warmup", ->(cell, cells) { ratio(pss_times(cell, cells["puma-warmup"], 2000)) }],
      pss_long: ["after 20 000", ->(cell, _) { number(cell.median { |found| found.pss_after(20_000) }) }],
      pss_long_vs_puma: ["÷ puma-preload", ->(cell, cells) { ratio(pss_times(cell, cells["puma-preload"], 20_000)) }],
      pss_long_vs_warmup: ["÷ puma-warmup", ->(cell, cells) { ratio(pss_times(cell, cells["puma-warmup"], 20_000)) }],
      pss_workers: ["of which workers", ->(cell, _) { number(cell.median { |found| found.pss_after(20_000, "workers") }) }],
      errors: ["errors", ->(cell, _) { number(cell.measurements.sum(&:error_count)) }]
    }.freeze

    PLOTS = {
      "rate" => "%{many} per second",
      "fair" => "%{many} of each connection",
      "latency" => "latency by percentile%{corrected}",
      "prediction" => "latency by percentile, measured and predicted",
      "summary" => "typical and slow responses",
      "memory" => "PSS of all processes after so many requests",
      "growth" => "operations beside more and more other things"
    }.freeze

    def initialize(result, plots)
      @result = result
      @plots = plots
    end

    def to_markdown
      [heading, *@result.by_shape.map { |shape, cells| section(shape, cells) }].join("\n")
    end

    class << self
      def number(value)
        return "–" unless value
        return format("%.1f", value) if value < 100 && value != value.round

        value.round.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, " ")
      end

      def ratio(value)
        return "–" unless value

        format(value.between?(1e-9, 0.01) ? "%.4f" : "%.2f", value)
      end

      def pss_times(cell, other, requests)
        cell.times(other, ->(found) { found.pss_after(requests) })
      end

      def milliseconds(value)
        return "–" unless value

        format(value < 10 ? "%.2f" : "%.0f", value)
      end

      # The percentile that the simulation predicts, and the ratio of the measured one to it.
      def predicted(cell, wanted)
        said = cell.prediction&.percentile(wanted)
        measured = cell.percentile(wanted)
        said && measured ? "#{milliseconds(said)} (× #{ratio(measured / said)})" : "–"
      end
    end

    private

    # The text with the scenario's units filled in.
    def count(text)
      words = @result.scenario.drive.units.merge(corrected: @result.corrected? ? ", corrected for coordinated omission" : "")
      text.gsub(/%\{(\w+)\}/) { words.fetch(Regexp.last_match(1).to_sym) }
    end

    def heading
      facts = @result.facts.map { |name, value| "- #{name}: #{value}" }
      images = @plots.map { |plot| "![#{@result.scenario.name}: #{count(PLOTS[plot])}](#{@result.basename}-#{plot}.svg)\n" }
      <<~MARKDOWN
        # #{@result.basename}

        #{@result.scenario.about}
        bench/METHOD.md describes the method and its limits.

        #{facts.join("\n")}

        #{images.join("\n")}
      MARKDOWN
    end

    def section(shape, cells)
      title = "## `-w #{shape.workers} -t #{shape.threads}`, #{@result.scenario.clients(shape)}"
      own = @result.scenario.drive.table(cells) if @result.scenario.drive.respond_to?(:table)
      return [title, "", *table(own.headings, own.rows), "", *remarks(shape, cells, own.remarks)].join("\n") if own

      by_name = cells.to_h { |cell| [cell.server, cell] }
      columns = METRICS.values_at(*@result.scenario.metrics)
      rows = cells.select(&:measured?).map do |cell|
        ["#{cell.server} #{cell.version}", *columns.map { |_, show| self.class.instance_exec(cell, by_name, &show) }]
      end
      [title, "", *table(["server", *columns.map { |heading, _| count(heading) }], rows), "", *remarks(shape, cells)].join("\n")
    end

    def table(headings, rows)
      ["| #{headings.join(" | ")} |", "|---#{"|--:" * (headings.size - 1)}|", *rows.map { |row| "| #{row.join(" | ")} |" }]
    end

    def remarks(shape, cells, more = [])
      best = @result.scenario.best_rate(shape)
      lines = cells.filter_map { |cell| "- #{cell.server}: #{cell.note}" if cell.note && cell.measured? }
      lines += cells.reject { |cell| cell.failures.empty? }.map do |cell|
        attempts = cell.failures.size + cell.measurements.size
        "- #{cell.server} failed #{cell.failures.size} of #{attempts} times: #{cell.failures.first.lines.first.chomp}"
      end
      lines += more
      lines.unshift("- With these threads and connections #{self.class.number(best)} requests/s is the best possible.") if best
      lines.empty? ? lines : [*lines, ""]
    end
  end
end
