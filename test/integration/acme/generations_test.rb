# frozen_string_literal: true

require "test_helper"
require "support/acme_servers"

# Spawners that end, are killed or hang in the middle of an order. The supervisor keeps the schedule.
class AcmeGenerationsTest < Minitest::Test
  include Fairlead::Test::AcmeServers

  # An authority that accepts connections but sends nothing before #answer.
  def setup
    @front = pebble.front.target
    @silent = TCPServer.new("127.0.0.1", 0)
    pebble.front.target = @silent.addr[1]
    @issued = pebble.issued
  end

  def teardown
    answer
    @silent.close
    super
  end

  def test_an_order_whose_spawner_is_killed_has_failed_and_is_placed_again_by_the_next_one
    server = with_acme("killed.example", arguments: %w[-w 2])
    ordering = wait_for_program(server, "killed.example")
    Process.kill(:KILL, spawner = server.spawner_pid)
    server.wait_for_output(/there is no new certificate for killed.example: the process that ordered it has ended; next attempt at .* UTC/)
    wait_until("the supervisor to reap the ordering process", seconds: 20) { !File.exist?("/proc/#{ordering}") }
    answer
    failure = wait_until("the file of the failure") { (path = failure_file(server, "killed.example")) && File.file?(path) && path }

    assert_equal 1, JSON.parse(File.read(failure))["count"]
    File.delete(failure)
    server.wait_for_output(/the certificate for killed.example is valid until/)

    refute_equal spawner, server.spawner_pid
    assert_equal [1, 2], [pebble.issued - @issued, server.stdout.scan("ordering a certificate").size]
    assert_empty failure_file(server, "killed.example")
  end

  [0, 2].each do |workers|
    define_method(:"test_a_hot_restart_in_the_middle_of_an_order_makes_one_certificate_with_#{workers}_workers") do
      server = with_acme("restarted.example", arguments: ["-w", workers])
      wait_for_program(server, "restarted.example")
      answer
      server.signal(:USR2)
      server.wait_for_output(/the certificate for restarted.example is valid until/, seconds: 30)

      assert_match(/hot restart: done/, server.log)
      assert_equal [1, 2], [pebble.issued - @issued, server.stdout.scan("ordering a certificate").size]
      refute_match(/there is no new certificate/, server.log)
    end
  end

  # Without an account, orders run one at a time.
  def test_the_order_of_a_spawner_that_hangs_blocks_no_other
    server = with_acme("hung.example", "other.example", arguments: %w[-w 1 --worker-timeout 2])
    wait_for_program(server, "hung.example")
    answer
    Process.kill(:STOP, server.spawner_pid)
    server.wait_for_output(/the certificate for other.example is valid until/, seconds: 40)

    assert_match(/there is no new certificate for hung.example: the process that ordered it has ended/, server.log)
    File.delete(failure_file(server, "hung.example"))
    server.wait_for_output(/the certificate for hung.example is valid until/)

    assert_equal 2, pebble.issued - @issued
  end

  private

  def answer
    pebble.front.target = @front
  end

  # Waits until an order is in progress; returns its process.
  def wait_for_program(server, host)
    program = wait_until("the ordering process") do
      parent = server.spawner_pid || server.serving_pid
      server.children(/\Afairlead: acme #{host}/, of: parent).first if parent
    end
    wait_until("its connection") { @silent.accept_nonblock(exception: false).is_a?(TCPSocket) }
    program
  end
end
