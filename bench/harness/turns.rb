# frozen_string_literal: true

module Bench
  # Measures servers in turn: A B C, A B C, … so that whatever else the machine does meets all of them. A server is started
  # afresh for every measurement, warmed up, measured and ended before the next one starts.
  class Turns
    def initialize(scenario, servers, options, load_tool, output: $stderr)
      @scenario = scenario
      @servers = servers
      @options = options
      @load_tool = load_tool
      @output = output
      @stolen = []
    end

    # One Cell for each shape and server.
    def run
      @options.shapes(@scenario).flat_map do |shape|
        cells = @servers.select { |server| server.runs?(shape, @scenario) }.map { |server| Cell.for(shape, server) }
        @options.rounds.times { |round| cells.each { |cell| measure(cell, shape, round) } }
        cells
      end
    end

    # Share of CPU time the host took away in the worst measurement.
    def most_stolen
      @stolen.max || 0.0
    end

    private

    def measure(cell, shape, round)
      return if cell.failures.size > 1

      found = Site.open(@scenario) do |site|
        Running.start(Server.named(cell.server), site, shape) { |running| under_load(running, shape) }
      end
      found.round = round
      cell.measurements << found
      say(cell, round, format("%.0f/s  p99 %.2f ms", found.rate, found.percentile(99)))
    rescue Error => e
      cell.failures << e.message
      say(cell, round, "FAILED: #{e.message}")
    end

    def under_load(running, shape)
      warm_up(running, shape)
      before = running.group.cpu_seconds
      found, stolen = Noise.during do
        @load_tool.measure(running.url, connections: shape.connections, seconds: @options.seconds, requests: @scenario.requests(shape))
      end
      @stolen << stolen
      raise Error, "ended under load" unless running.whole?

      raise Error, "no request was answered" if found.requests.zero?
      raise Error, "answers were cut short" if found.bytes < found.requests * @scenario.answer_bytes

      after = running.group.cpu_seconds
      found.cpu_us = (after - before) * 1e6 / found.requests if after && before
      found.memory_mib = running.group.memory_kib&.fdiv(1024)
      found
    end

    # A warm-up that time ends leaves requests behind it; where the app takes long for them, a number of requests ends it.
    def warm_up(running, shape)
      requests = shape.connections * 2 if @scenario.requests(shape)
      @load_tool.measure(running.url, connections: shape.connections, seconds: @options.warmup, requests: requests)
    end

    def say(cell, round, text)
      @output.puts(format("%-6s %-28s round %d/%d  %-17s %s", @scenario.name, cell.shape.to_s, round + 1, @options.rounds, cell.server, text))
    end
  end
end
