# frozen_string_literal: true

require "test_helper"
require "socket"
require "soak/checks"
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
end
