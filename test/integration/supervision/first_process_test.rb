# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# The server as the first process of a container.
class FirstProcessTest < Minitest::Test
  include Fairlead::Test::Supervision

  # A server in its own PID namespace, in which it is process 1.
  class First < Fairlead::Test::ServerProcess
    COMMAND = %w[unshare --pid --fork --kill-child --mount-proc].freeze

    def self.possible? = Process.uid.zero? && system(*COMMAND, "true", err: File::NULL)

    private

    def command = [*COMMAND, *super]
  end

  # Leaves three orphans at /leave; responds with the number of zombies.
  APP = <<~'RUBY'
    run lambda { |env|
      3.times { system("sh", "-c", "sleep 0.05 & exit 0") } if env["PATH_INFO"] == "/leave"
      zombies = Dir.glob("/proc/[0-9]*/stat").count { |path| File.read(path).include?(") Z ") rescue false }
      [200, {}, ["#{zombies} #{Process.pid}"]]
    }
  RUBY

  def setup
    skip "this machine does not allow PID namespaces" unless First.possible?
  end

  SHAPES.each do |name, workers|
    define_method(:"test_orphans_are_reaped_#{name}") do
      server = supervised(workers, app: APP, kind: First)
      zombies = Array.new(5) { reply(server, "/leave") }
      refute_includes zombies, nil
      pass_time(0.2) # until the orphans have ended

      wait_until("the end of the zombies", seconds: 25) { reply(server)&.first == "0" }
    end
  end
end
