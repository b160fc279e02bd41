# frozen_string_literal: true

require "test_helper"
require "support/blocked_output"
require "support/supervision"

# A log without a reader: Ctrl-S in a terminal, a log driver that hangs, a stopped program.
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

    # An unread line in the access log delays only the access log.
    define_method(:"test_error_lines_are_written_while_nobody_reads_the_access_log_#{name}") do
      server = prepared(workers, "--log-requests", kind: Fairlead::Test::BlockedOutput, &:start)
      server.block(:stdout)
      3.times do |round|
        assert reply(server)
        assert_equal 400, refused(server)
        wait_until("an error line for each") { server.stderr.scan("refused 400").size == round + 1 }
      end
      assert_ends(server)
    end

    define_method(:"test_access_lines_are_written_while_nobody_reads_the_error_log_#{name}") do
      server = prepared(workers, "--log-requests", kind: Fairlead::Test::BlockedOutput, &:start)
      server.block(:stderr)
      3.times do |round|
        assert_equal 400, refused(server)
        assert reply(server, "/#{round}")
        wait_until("an access line") { server.stdout.include?("GET /#{round} ") }
      end
      assert_ends(server)
    end
  end

  private

  # Status of a request that causes a line in the error log.
  def refused(server)
    client = connect(server).write("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")
    client.answer.status
  ensure
    client&.close
  end

  def unread(workers)
    server = prepared(workers, kind: Fairlead::Test::BlockedOutput, &:start)
    server.block(:stdout, :stderr)
    server
  end
end
