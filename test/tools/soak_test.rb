# frozen_string_literal: true

require "test_helper"
require "socket"
require "soak/causes"
require "soak/checks"
require "soak/gauges"
require "soak/ledger"
require "soak/pattern"
require "support/processes"

# The judgement of the soak (test/soak).
class SoakTest < Minitest::Test
  include Fairlead::Test::Folders

  Pattern = Fairlead::Soak::Pattern

  def test_bytes_belong_to_a_number
    [1, 100, 5000].each { |size| assert_nil Pattern.check(Pattern.bytes(7, size), 7, size) }
  end

  def test_bytes_of_another_number_are_recognised
    [0, 30, 3000].each do |at|
      bytes = Pattern.bytes(7, 5000)
      bytes[at, 100] = Pattern.bytes(8, 100)
      error = assert_raises(Pattern::Mixed) { Pattern.check(bytes, 7, 5000) }

      assert_equal "body of 7 holds bytes of 8", error.message
    end
  end

  def test_bytes_that_are_missing_added_or_changed_are_recognised
    bytes = Pattern.bytes(7, 5000)

    ["", bytes[0...-1], "#{bytes}x", bytes.sub(/[a-z]/, "?"), bytes[1024..]].each do |wrong|
      assert_raises(Pattern::Wrong, wrong[0, 30]) { Pattern.check(wrong, 7, 5000) }
    end
  end

  def test_what_must_not_be_fails_its_kind_alone
    ledger = Fairlead::Soak::Ledger.new
    Fairlead::Soak::Ledger::OUTCOMES.each { |outcome| ledger.record(outcome.to_s, 1, outcome, "text") }

    assert_equal Fairlead::Soak::Ledger::FAILURES.map(&:to_s).sort, ledger.kinds.select { |kind| ledger.failed?(kind) }
    assert_includes ledger.lines, "  lost in lost 1: text"
  end

  PAGE = <<~METRICS
    # HELP fairlead_connections Open connections.
    # TYPE fairlead_connections gauge
    fairlead_connections{worker="0",slot="3"} %<connections>s
    # TYPE fairlead_requests counter
    fairlead_requests_total{worker="0",slot="3"} 4711
    # TYPE fairlead_subscriptions gauge
    fairlead_subscriptions{worker="0",slot="3"} %<subscriptions>s
    # TYPE fairlead_limit_connections gauge
    fairlead_limit_connections{worker="0",slot="3"} 9223372036854775807
    # TYPE http_server_active_requests gauge
    http_server_active_requests{http_request_method="GET"} 0
  METRICS

  def test_gauges_below_zero_are_impossible
    { "-1" => true, "18446744073709551615" => true, "0" => false, "70" => false }.each do |value, wrong|
      assert_equal wrong, gauges(connections: value).impossible.any?, value
    end
    assert_equal ['fairlead_connections{worker="0",slot="3"} -1'], gauges(connections: "-1").impossible
  end

  def test_gauges_that_do_not_come_back_are_recognised
    before = gauges(connections: "1", subscriptions: "2")

    assert_empty gauges(subscriptions: "2").busy(before)
    assert_equal ['fairlead_connections{worker="0",slot="3"} 1'], gauges(connections: "1").busy(before)
    assert_equal ['fairlead_subscriptions{worker="0",slot="3"} 3'], gauges(subscriptions: "3").busy(before)
    assert_includes before.missing, "fairlead_request_disk_bytes"
  end

  def test_lines_of_the_log_need_a_cause
    lines = ["[1] error in the application: GET /fail: x.rb:1: soak (RuntimeError)\n", "\tfrom x.rb:2\n", "\n",
             "[1] worker 0 (pid 7) ended unexpectedly: killed by SIGKILL\n", "[1] [BUG] the server panicked\n"]

    assert_equal ["[1] [BUG] the server panicked"], Fairlead::Soak::Causes.new({ kill: 1 }).unknown(lines)
    assert_equal lines.last(2).map(&:chomp), Fairlead::Soak::Causes.new({}).unknown(lines)
  end

  def test_a_check_passes_that_ends_well
    in_folder("good.rb" => "", "bad.rb" => "exit 1", "support/other.rb" => "exit 1") do |folder|
      checks = Fairlead::Soak::Checks.new(folder)

      assert_equal [1, 1], checks.run
      assert_equal [1, 0], checks.run(["good"])
      error = assert_raises(ArgumentError) { checks.run(%w[good other]) }
      assert_equal "unknown check other; use bad, good", error.message
    end
  end

  def test_the_clients_of_a_process_are_found
    server = TCPServer.new("127.0.0.1", 0)
    client = TCPSocket.new("127.0.0.1", server.local_address.ip_port, "127.7.7.7", 0)
    accepted = server.accept

    assert_equal ["127.7.7.7:#{client.local_address.ip_port}"], Fairlead::Test::Processes.clients(Process.pid, server.local_address.ip_port)
    accepted.close
    assert_empty Fairlead::Test::Processes.clients(Process.pid, server.local_address.ip_port)
  ensure
    [server, client, accepted].each { |socket| socket&.close }
  end

  private

  def gauges(connections: "0", subscriptions: "0")
    Fairlead::Soak::Gauges.new(format(PAGE, connections: connections, subscriptions: subscriptions))
  end
end
