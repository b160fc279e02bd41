# frozen_string_literal: true

require "etc"
require "rbconfig"

module Bench
  # The machine of the measurements: printed above every table, because numbers without it mean nothing.
  module Machine
    module_function

    def facts(options, load_tool)
      {
        "Date" => Time.now.strftime("%Y-%m-%d"),
        "Machine" => "#{Etc.nprocessors} × #{processor}, #{memory} RAM, #{Etc.uname.values_at(:sysname, :release).join(" ")}",
        "Ruby" => [options.label, RUBY_DESCRIPTION].compact.join(": "),
        "Rack" => rack,
        "Load tool" => "#{load_tool.version}, on the same machine",
        "Method" => method_line(options),
        "Load average before" => load_average
      }.compact
    end

    def processor
      cpuinfo = "/proc/cpuinfo"
      return RbConfig::CONFIG["host_cpu"] unless File.exist?(cpuinfo)

      File.read(cpuinfo)[/^model name\s*:\s*(.+)$/, 1] || RbConfig::CONFIG["host_cpu"]
    end

    def memory
      meminfo = "/proc/meminfo"
      return "?" unless File.exist?(meminfo)

      format("%.0f GB", File.read(meminfo)[/^MemTotal:\s+(\d+)/, 1].to_i / 1e6)
    end

    def rack
      Gem::Specification.find_by_name("rack").version.to_s
    rescue Gem::MissingSpecError
      nil
    end

    def load_average
      File.read("/proc/loadavg").split.first if File.exist?("/proc/loadavg")
    end

    def method_line(options)
      rounds = options.rounds == 1 ? "one round" : "#{options.rounds} rounds, the servers in turn, medians"
      "#{rounds}; a warm-up before each measurement"
    end
    private_class_method :processor, :memory, :rack, :load_average, :method_line
  end
end
