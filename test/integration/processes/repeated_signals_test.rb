# frozen_string_literal: true

require "test_helper"
require "net/http"
require "support/processes"

# Signals that come twice because another program sends them to the process and to its group, and repeated signals from an
# impatient operator.
class RepeatedSignalsTest < Minitest::Test
  include Fairlead::Test::Servers

  PATIENT = <<~'RUBY'
    run lambda { |env|
      File.write("inside#{env["PATH_INFO"].tr("/", "-")}", "")
      sleep 0.01 until File.exist?("go")
      [200, {}, ["done"]]
    }
  RUBY

  # Time in which a repeated signal counts as the same one, in seconds: crates/supervisor/src/insistence.rs.
  HURRY = 1

  SHAPES = { "a_single_process" => [], "workers" => %w[-w 2] }.freeze

  SHAPES.each do |name, flags|
    [%i[TERM TERM], %i[INT TERM], %i[HUP HUP], %i[TERM HUP]].each do |first, second|
      define_method(:"test_with_#{name}_a_#{second}_right_after_#{first}_lets_requests_finish") do
        server = serve(PATIENT, *flags)
        answer = request_in(server, "/work")
        server.signal(first)
        server.wait_for_output(/#{first}: finishing/)
        server.signal(second)
        assert_goes_on(server)
        server.write("go", "")

        assert_equal "done", answer.value
        assert_equal 0, server.wait_exit.exitstatus
        assert_empty server.stderr
      end
    end

    define_method(:"test_with_#{name}_a_term_for_all_processes_twice_lets_requests_finish") do
      server = serve(PATIENT, *flags)
      answer = request_in(server, "/work")
      2.times { Process.kill(:TERM, -server.pid) }
      assert_goes_on(server)
      server.write("go", "")

      assert_equal "done", answer.value
      assert_equal 0, server.wait_exit.exitstatus
    end

    define_method(:"test_with_#{name}_a_second_int_names_the_requests_that_it_aborts") do
      server = serve(PATIENT, "-t", 1, *flags)
      answer = request_in(server, "/work")
      server.signal(:INT)
      server.wait_for_output(/INT: finishing/)

      assert_equal 0, server.stop(:INT).exitstatus
      assert_equal :cut_off, answer.value
      assert_match(%r{aborted GET /work: it was still running$}, server.stderr)
    end

    define_method(:"test_with_#{name}_a_term_after_a_second_aborts_and_names_the_requests") do
      server = serve(PATIENT, *flags)
      answer = request_in(server, "/work")
      server.signal(:TERM)
      server.wait_for_output(/TERM: finishing/)
      later = monotonic + HURRY
      wait_until("a second") { monotonic > later }

      assert_equal 0, server.stop.exitstatus
      assert_equal :cut_off, answer.value
      assert_match(%r{aborted GET /work: it was still running$}, server.stderr)
    end
  end

  def test_a_request_that_is_forced_to_end_is_named_once
    server = serve(PATIENT, "--shutdown-timeout", "0.2")
    answer = request_in(server, "/work")

    assert_equal 0, server.stop.exitstatus
    assert_match(/503/, answer.value)
    assert_equal 1, server.stderr.scan("aborted GET /work").size
  end

  def test_requests_that_wait_for_a_thread_are_counted
    server = serve(PATIENT, "-t", 1)
    answers = [request_in(server, "/work"), Thread.new { get(server, "/next") }]
    wait_until("the next one to wait") { Fairlead::Test::Processes.clients(server.serving_pids.first, server.port).size == 2 }
    server.signal(:QUIT)
    server.wait_exit

    assert_equal %i[cut_off cut_off], answers.map(&:value)
    assert_match(%r{aborted GET /work: it was still running\naborted 1 request that still waited for a thread}, server.stderr)
  end

  def test_a_request_with_a_path_that_cannot_be_logged_is_aborted_like_others
    app = <<~'RUBY'
      run lambda { |env|
        env.update("SCRIPT_NAME" => "/ü", "PATH_INFO" => "/\xff".b)
        File.write("inside", "")
        sleep
      }
    RUBY
    server = serve(app, "--shutdown-timeout", 1)
    answer = Thread.new { get(server, "/") }
    wait_until("the request") { File.exist?(server.path("inside")) }

    assert_equal 0, server.stop.exitstatus
    assert_match(/Service Unavailable/, answer.value)
    assert_match(%r{aborted GET /ü/\\xFF: it was still running$}, server.stderr)
  end

  private

  # Asserts that the loop handles another signal, and the request still runs.
  def assert_goes_on(server)
    server.signal(:PWR)
    server.wait_for_output(/thread fairlead 1/)
    assert_predicate server, :running?
  end

  def request_in(server, path)
    thread = Thread.new { get(server, path) }
    wait_until("the request") { File.exist?(server.path("inside#{path.tr("/", "-")}")) }
    thread
  end

  def get(server, path)
    Net::HTTP.get(URI(server.url(path)))
  rescue SystemCallError, IOError
    :cut_off
  end
end
