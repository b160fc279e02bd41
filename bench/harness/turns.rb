# frozen_string_literal: true

module Bench
  # Measures servers in turn, A B C, A B C, …, so that disturbances on the machine affect all of them. A server is
  # started afresh for every measurement, warmed up, measured and stopped before the next one starts.
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
        cells = @servers.select { |server| @scenario.asks?(server, shape) }.map { |server| Cell.for(shape, server) }
        @options.rounds.times { |round| cells.each { |cell| measure(cell, shape, round) } }
        cells
      end
    end

    # Share of CPU time that the host took away in the worst measurement.
    def most_stolen
      @stolen.max || 0.0
    end

    private

    def measure(cell, shape, round)
      return if cell.failures.size > 1

      server = Server.named(cell.server)
      found = Site.open(@scenario, server, shape) do |site|
        Running.start(server, site, shape, extra: @scenario.arguments(server)) { |running| under_load(running, shape, server) }
      end
      found.round = round
      cell.measurements << found
      say(cell, round, drive.summary(found))
    rescue Error => e
      cell.failures << e.message
      say(cell, round, "FAILED: #{e.message}")
    end

    def under_load(running, shape, server)
      target = Drive::Target.new(@load_tool, running, shape, server.dialect, @scenario.path(server))
      server.under(running, shape) do
        drive.warm_up(target, @options.warmup)
        found = measured(target)
        drive.complete(target, @options.seconds, found) if drive.respond_to?(:complete)
        raise Error, "ended under load" unless running.whole?

        problem = drive.problem(found) and raise(Error, problem)

        found.memory_mib ||= running.group.memory_kib&.fdiv(1024)
        found
      end
    end

    # The measurement with its CPU time.
    def measured(target)
      group = target.running.group
      before = group.cpu_seconds
      found, stolen = Noise.during { drive.measure(target, @options.seconds) }
      @stolen << stolen
      after = group.cpu_seconds
      found.cpu_us = (after - before) * 1e6 / found.requests if after && before && found.requests&.positive?
      found
    end

    def drive
      @scenario.drive
    end

    def say(cell, round, text)
      @output.puts(format("%-6s %-28s round %d/%d  %-17s %s", @scenario.name, cell.shape.to_s, round + 1, @options.rounds, cell.server, text))
    end
  end
end
