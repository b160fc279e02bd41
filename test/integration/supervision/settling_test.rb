# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# New code that serves for a moment and then crashes.
class SettlingTest < Minitest::Test
  include Fairlead::Test::Supervision

  CRASHING = "Thread.new { sleep 0.3; exit!(3) } if File.read('version').strip == '2'\n"

  SHAPES.each do |name, workers|
    %i[USR1 USR2].each do |signal|
      kind = signal == :USR1 && workers.positive? ? "phased restart" : "hot restart"

      define_method(:"test_#{signal}_to_code_that_crashes_after_its_boot_fails_#{name}") do
        server = supervised(workers, "--no-preload", app: CRASHING + VERSIONED)
        old = server.serving_pids
        server.write("version", "2")
        server.signal(signal)
        wait_for_line(server, /#{kind}: failed, .* goes on serving/)

        refute_match(/#{kind}: done/, server.stdout)
        wait_for_version(server, "1")
        wait_until("the old code in all processes") { server.serving_pids.size == old.size && Array.new(6) { reply(server)&.first }.uniq == ["1"] }
        refute_empty old & server.serving_pids
        assert_restarts(server, "3", signal: signal)
      end
    end
  end
end
