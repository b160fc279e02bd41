# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "../../support/waiting"
require_relative "result"

# Autobahn's fuzzing client: runs the cases of its suite, one connection each, on a server that should echo.
module Autobahn
  class Failed < StandardError; end

  COMMAND = File.expand_path("../../../bin/support/autobahn", __dir__)

  # First line of the program's output: the selected cases.
  ANNOUNCEMENT = /^Cases = \[(.*)\]$/

  # Returns the reason why the suite cannot run on this machine; nil if it can. Debian packages it, and it is pinned for one
  # architecture.
  def self.unavailable
    return if ENV["PATH"].to_s.split(":").any? { |folder| File.executable?(File.join(folder, "apt-get")) } && `uname -m`.chomp == "x86_64"

    "the packages of Autobahn's suite are for Debian on x86-64"
  end

  # The suite's name for this kind of server in its reports.
  AGENT = "server"

  # Runs the cases that match +patterns+ ("9.1.1", "6.*") on the server at +url+, and returns a Result for each.
  def self.try(url, patterns, seconds:)
    Dir.mktmpdir("autobahn-") do |folder|
      spec = { outdir: File.join(folder, "reports"), servers: [{ agent: AGENT, url: url }], cases: patterns }
      File.write(File.join(folder, "spec.json"), JSON.generate(spec))
      log = run(folder, seconds)
      cases = log[ANNOUNCEMENT, 1].to_s.scan(/[\d.]+/)
      raise Failed, "wstest has found no case of #{patterns.join(", ")}\n#{log}" if cases.empty?

      results(File.join(folder, "reports"), cases)
    end
  end

  class << self
    private

    # Runs the program in +folder+ and returns its output. The program has child processes, so the whole group is killed.
    def run(folder, seconds)
      log = File.join(folder, "log")
      command = [COMMAND, "--mode", "fuzzingclient", "--spec", "spec.json"]
      pid = Process.spawn(*command, chdir: folder, pgroup: true, in: File::NULL, %i[out err] => log)
      status = Fairlead::Test::Waiting.wait_until("wstest to end", seconds: seconds) { Process.wait2(pid, Process::WNOHANG)&.last }
      pid = nil
      status.success? or raise Failed, "wstest has failed (#{status})\n#{File.read(log)}"
      File.read(log)
    rescue Fairlead::Test::Waiting::Expired => e
      raise Failed, "#{e.message}\n#{File.read(log)[-2000..]}"
    ensure
      Process.kill(:KILL, -pid) && Process.wait(pid) if pid
    end

    # A case without a report was never started, or never ended.
    def results(folder, cases)
      index = read(folder, "index.json").fetch(AGENT, {})
      cases.map { |id| Result.new(id, index[id] && read(folder, index[id].fetch("reportfile"))) }
    end

    # The report contains the bytes of the case, among them halves of surrogate pairs, which are invalid in JSON.
    def read(folder, name)
      JSON.parse(File.read(File.join(folder, name)).gsub(/\\ud[89a-f]\h\h/i, "?"))
    end
  end
end
