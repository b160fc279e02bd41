# frozen_string_literal: true

require_relative "../../support/server_process"

module PumaAnswers
  # Debian's Puma with the options and the application of a Fairlead server.
  class Puma < Fairlead::Test::ServerProcess
    PROGRAM = "/usr/bin/puma"

    def self.available? = File.executable?(PROGRAM)

    # The number before the first dot.
    def self.major_version = Integer(`#{PROGRAM} --version`[/puma version (\d+)/, 1], 10)

    def ready? = stdout.include?("Use Ctrl-C to stop") && (!stdout.include?("Cluster") || stdout.include?("booted in"))

    def addresses = stdout.scan(/Listening on (\S+)$/).flatten

    private

    def command = [PROGRAM, "--no-config", *@arguments]
  end
end
