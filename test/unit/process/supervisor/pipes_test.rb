# frozen_string_literal: true

require "test_helper"
require "io/wait"

class PipesTest < Minitest::Test
  include Fairlead::Test::Waiting

  def setup
    @pipes = Fairlead::Supervisor::Pipes.new
  end

  def test_a_worker_reports_that_it_is_ready_and_why_it_cannot_start
    in_worker do |pipes|
      pipes.booted(3)
      pipes.failed(4, "config.ru:1: \"no\"\nsecond line")
    end
    reports = @pipes.reports

    assert_equal [[:booted, 3, ""], [:failed, 4, "config.ru:1: \"no\"\nsecond line"]], reports.map(&:to_a)
    assert_empty @pipes.reports
  end

  def test_a_reason_of_any_length_and_encoding_is_one_report
    in_worker do |pipes|
      pipes.failed(0, "é" * 5000)
      pipes.failed(1, "\xFF\n" * 5000)
    end

    assert_equal [0, 1], @pipes.reports.map(&:slot)
  end

  def test_every_worker_learns_that_the_supervisor_wants_an_end
    states = Array.new(3) { watch_in_worker }
    @pipes.ask_workers_to_end

    assert_equal ["ending"] * 3, states.map(&:read)
  end

  def test_a_worker_that_is_forked_when_the_end_is_near_learns_of_it_too
    reader, writer = IO.pipe
    gate, opener = IO.pipe
    pid = fork do
      opener.close
      gate.read
      report_state(writer)
    end
    @pipes.ask_workers_to_end
    [writer, opener].each(&:close)
    Process.wait(pid)

    assert_equal "ending", reader.read
  end

  def test_a_worker_learns_that_the_supervisor_is_gone
    reader, writer = IO.pipe
    supervisor = fork do
      pipes = Fairlead::Supervisor::Pipes.new
      fork { report_state(writer, pipes) }
      exit!(0)
    end
    writer.close
    Process.wait(supervisor)

    assert_equal "gone", reader.read
  end

  def test_while_the_supervisor_lives_there_is_nothing_to_learn
    assert_nil @pipes.supervisor_state
  end

  def test_a_report_to_nobody_harms_nobody
    in_worker(keep: false) { |pipes| pipes.booted(1) }
  end

  private

  def in_worker(keep: true)
    @pipes.reports_io.close unless keep
    pipes = @pipes
    pid = fork do
      pipes.close_supervisor_ends if keep
      yield pipes
      exit!(0)
    end
    assert_predicate Process.wait2(pid).last, :success?
  end

  def watch_in_worker
    reader, writer = IO.pipe
    pid = fork { report_state(writer) }
    Process.detach(pid)
    writer.close
    reader
  end

  def report_state(writer, pipes = @pipes)
    pipes.close_supervisor_ends
    pipes.end_io.wait_readable(10)
    writer.syswrite(pipes.supervisor_state.to_s)
    exit!(0)
  end
end
