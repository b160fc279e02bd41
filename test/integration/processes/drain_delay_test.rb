# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# drain_delay: the time between the signal and the end of accepting.
class DrainDelayTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = "run ->(env) { sleep env['QUERY_STRING'].to_f; [200, {}, ['ok']] }"

  SHAPES = [[], ["-w", 2]].freeze

  def test_connections_are_accepted_and_each_ends_with_its_next_response
    SHAPES.each { |arguments| assert_leaves(serve(APP, "--drain-delay", 3, *arguments)) }
  end

  def test_the_port_is_open_for_as_long_as_was_asked_for
    SHAPES.each do |arguments|
      server = serve(APP, "--drain-delay", 1, *arguments)
      began = now
      server.signal(:TERM)
      server.wait_exit

      assert_includes 1.0..10.0, now - began
    end
  end

  def test_a_second_signal_ends_the_delay
    SHAPES.each do |arguments|
      server = serve(APP, "--drain-delay", 60, *arguments)
      server.signal(:TERM)
      server.wait_for_output(/accepting for 60 s/)
      assert_equal 200, get(server).status
      server.signal(:INT)

      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  def test_without_a_delay_the_port_is_closed_at_once
    server = serve(APP)
    busy = connect(server).request("GET", "/?2")
    wait_until("a busy thread") { server.ready? && get(server).status == 200 }
    server.signal(:TERM)
    server.wait_for_output(/TERM: finishing open requests/)
    wait_until("a closed port", seconds: 2) { refused?(server) }

    assert_equal 200, busy.answer.status
  end

  private

  def assert_leaves(server)
    kept = connect(server)
    assert_nil kept.get["connection"]
    server.signal(:TERM)
    server.wait_for_output(/TERM: accepting for 3 s, then finishing open requests/)

    wait_until("the last response on a connection") { kept.get["connection"] == "close" }
    assert_predicate kept, :closed?
    wait_until("new connections for one request") { Array.new(4) { get(server)["connection"] }.uniq == ["close"] }
    busy = connect(server).request("GET", "/?4")
    wait_until("a closed port") { refused?(server) }

    assert_equal 200, busy.answer.status
    assert_equal 0, server.wait_exit.exitstatus
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
