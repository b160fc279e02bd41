# frozen_string_literal: true

require "test_helper"

class SignalsTest < Minitest::Test
  def setup
    @signals = Fairlead::Signals.new
  end

  def teardown
    @signals.restore
  end

  def test_those_that_the_system_does_not_have_and_those_that_are_to_be_left_alone_are_not_known
    known = Fairlead::Signals.known("INFOX", "USR1", "USR2", environment: { "PUMA_SKIP_SIGUSR2" => "1" })

    assert_equal ["USR1"], known
  end

  def test_a_signal_becomes_an_event
    @signals.trap("USR1")
    Process.kill(:USR1, Process.pid)

    assert_equal [:USR1], @signals.wait(5)
  end

  def test_events_come_in_their_order_and_none_is_lost
    @signals.push(:a)
    @signals.push(:b)

    assert_equal %i[a b], @signals.wait(5)
    assert_empty @signals.wait(0)
  end

  def test_more_events_than_fit_into_the_pipe_do_not_block
    70_000.times { @signals.push(:a) }

    assert_equal 70_000, @signals.wait(5).size
  end

  def test_a_thread_ends_the_wait
    thread = Thread.new { @signals.push(:a) }

    assert_equal [:a], @signals.wait(5)
  ensure
    thread&.join
  end

  def test_a_readable_io_ends_the_wait_and_is_told
    reader, writer = IO.pipe
    writer.close

    assert_equal [reader], @signals.wait(5, reader)
  ensure
    reader&.close
  end

  def test_every_signal_gets_its_handler_back
    seen = []
    previous = Signal.trap("USR1") { seen << :mine }
    @signals.trap("USR1", "USR2")
    @signals.ignore("USR1")
    @signals.restore
    Process.kill(:USR1, Process.pid)
    Fairlead::Test::Waiting.wait_until("the handler") { seen.any? }

    assert_equal [:mine], seen
  ensure
    Signal.trap("USR1", previous)
    @signals = Fairlead::Signals.new
  end

  def test_an_event_after_the_end_harms_nobody
    signals = Fairlead::Signals.new
    signals.restore

    assert_nil signals.push(:late)
  end
end
