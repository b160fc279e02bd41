# frozen_string_literal: true

require "test_helper"

class ChildrenTest < Minitest::Test
  include Fairlead::Test::Waiting

  Child = Fairlead::Supervisor::Child

  def setup
    @children = Fairlead::Supervisor::Children.new
    @strangers = []
  end

  def teardown
    @children.each(&:kill)
    @children.each { |child| child.link.close }
    wait_until("the children to end") { @children.reap && @children.empty? }
  end

  def test_those_that_have_ended_are_taken_out_with_their_status
    add(0) { sleep }
    add(1) { exit!(3) }
    (child, status), = wait_until("the end of a child") { (ended = @children.reap).any? && ended }

    assert_equal [1, 3], [child.slot, status.exitstatus]
    assert_equal [0], @children.map(&:slot)
  end

  def test_other_child_processes_are_left_to_whoever_started_them
    stranger = fork { exit!(7) }
    wait_until("the stranger to end") { File.read("/proc/#{stranger}/stat").include?(") Z ") }

    assert_empty @children.reap
    assert_equal 7, Process.wait2(stranger).last.exitstatus
  end

  def test_one_that_somebody_else_has_reaped_is_taken_out
    child = add(0) { exit!(0) }
    Process.wait(child.pid)

    assert_empty @children.reap, "its link may have something to say"
    child.link.close
    assert_equal [[child, :unknown]], @children.reap
  end

  def test_a_child_is_asked_to_end_and_can_be_killed
    child = add(0) { Signal.trap("TERM", "IGNORE") && sleep }
    child.terminate(12.5)

    assert_predicate child, :ending?
    assert_equal 12.5, child.kill_at
    child.kill
    assert_nil child.kill_at
    assert_equal "KILL", Signal.signame(wait_until("its end") { @children.reap.first }.last.termsig)
  end

  def test_a_signal_to_a_child_that_is_gone_harms_nobody
    child = add(0) { exit!(0) }
    Process.wait(child.pid)

    assert_nil child.signal("TERM")
    child.link.close
    @children.reap
  end

  def test_one_that_has_not_been_forked_yet_gets_its_signal_later
    child = @children.add(Child.new(index: 0, slot: 0, generation: 1, link: Fairlead::Link.pair.first, now: 0.0))
    child.terminate(12.5)
    child.forked(fork { sleep })

    assert_equal "TERM", Signal.signame(wait_until("its end") { @children.reap.first }.last.termsig)
  end

  def test_two_may_have_the_same_index_in_different_slots
    add(0) { sleep }
    slot = @children.free_slot(0, 64)
    second = @children.add(Child.new(index: 0, slot: slot, generation: 2, link: Fairlead::Link.pair.first, now: 0.0, pid: fork { sleep }))

    assert_equal [1, 2, second], [slot, @children.of(0).size, @children.of(0).last]
    assert_nil @children.free_slot(0, 2)
  end

  private

  def add(slot, &block)
    @children.add(Child.new(index: slot, slot: slot, generation: 1, link: Fairlead::Link.pair.first, now: 0.0, pid: fork(&block)))
  end
end
