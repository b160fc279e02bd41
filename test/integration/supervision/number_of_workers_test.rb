# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# A hot restart with another number of workers, also from zero and to zero.
class NumberOfWorkersTest < Minitest::Test
  include Fairlead::Test::Supervision

  [[2, 0], [0, 2], [1, 3], [3, 1]].each do |before, after|
    define_method(:"test_from_#{before}_to_#{after}") do
      server = started(before)
      old = [*server.serving_pids, *server.spawner_pid] - [server.pid]
      pid = server.pid
      failures = under_load(server) do
        server.write("version", "2")
        configure(server, "workers #{after}")
        server.signal(:USR2)
        wait_for_version(server, "2")
        wait_for_serving(server, after)
      end

      assert_empty failures
      wait_until("the end of the old processes", seconds: PATIENCE) { old.none? { |one| Fairlead::Test::Processes.alive?(one) } }
      assert_equal ["2", pid], [reply(server).first, server.pid]
      assert_ends(server)
    end
  end

  def test_a_restart_to_another_number_that_fails_leaves_the_number
    [[2, 0], [0, 2]].each do |before, after|
      server = started(before)
      serving = server.serving_pids
      server.write("version", "broken")
      configure(server, "workers #{after}")
      server.signal(:USR2)

      assert_refused(server, /this code is broken/, serving)
      configure(server, "workers #{before}")
      assert_restarts(server)
    end
  end

  private

  # Only the configuration file has the number.
  def started(workers)
    files = { "version" => "1", "config/fairlead.rb" => "#{QUICK}#{ADDRESS}workers #{workers}\n" }
    own(Fairlead::Test::ServerProcess.new(VERSIONED, bind: nil, files: files)).start
  end
end
