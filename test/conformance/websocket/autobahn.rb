# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "../../support/waiting"
require_relative "result"

# Autobahn's fuzzing client: a peer that tries the cases of its suite, one connection each, on a server that should echo.
module Autobahn
  class Failed < StandardError; end

  COMMAND = File.expand_path("../../../bin/support/autobahn", __dir__)

  # What the program says at its start: the cases that it is about to try.
  ANNOUNCEMENT = /^Cases = \[(.*)\]$/

  # Why the suite cannot run on this machine; nil when it can. Its packages are Debian's and pinned for one architecture.
  def self.unavailable
    return if ENV["PATH"].to_s.split(":").any? { |folder| File.executable?(File.join(folder, "apt-get")) } && `uname -m`.chomp == "x86_64"

    "the packages of Autobahn's suite are for Debian on x86-64"
  end

  # The suite's name for this kind of server in its reports.
  AGENT = "server"

  # Tries the cases that match +patterns+ ("9.1.1", "6.*") on the server at +url+, and returns a Result for each.
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

    # Runs the program in +folder+ and returns what it says. It has processes of its own, so it is ended as a group.
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

    # A case without a report was never tried, or never ended.
    def results(folder, cases)
      index = read(folder, "index.json").fetch(AGENT, {})
      cases.map { |id| Result.new(id, index[id] && read(folder, index[id].fetch("reportfile"))) }
    end

    # The bytes that a case has sent are in its report, among them halves of surrogate pairs, which are no JSON.
    def read(folder, name)
      JSON.parse(File.read(File.join(folder, name)).gsub(/\\ud[89a-f]\h\h/i, "?"))
    end
  end
end
