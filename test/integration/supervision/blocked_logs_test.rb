# frozen_string_literal: true

require "test_helper"
require "support/blocked_output"
require "support/supervision"

# Nobody reads the log: Ctrl-S in a terminal, a log driver that hangs, a program that has stopped.
class BlockedLogsTest < Minitest::Test
  include Fairlead::Test::Supervision
  include Fairlead::Test::HttpClients

  def test_a_dead_worker_is_replaced
    server = unread(2)
    assert_replaces(server, server.worker_pids.first)
    assert_replaces(server, server.worker_pids.last)
  end

  def test_a_restart_is_done
    server = unread(2)

    assert_restarts(server)
  end

  SHAPES.each do |name, workers|
    { TERM: 0, INT: 0, QUIT: 0 }.each do |signal, status|
      define_method(:"test_#{signal}_ends_the_server_#{name}") do
        server = unread(workers)
        assert_ends(server, signal)

        assert_equal status, server.status.exitstatus
      end
    end

    define_method(:"test_the_log_goes_on_when_it_is_read_again_#{name}") do
      server = unread(workers)
      server.signal(:TTIN)
      assert reply(server)
      server.unblock

      assert_ends(server)
      assert_match(/fairlead stopped\n\z/, server.stdout)
    end
  end

  private

  def unread(workers)
    server = prepared(workers, kind: Fairlead::Test::BlockedOutput, &:start)
    server.block(:stdout, :stderr)
    server
  end
end
