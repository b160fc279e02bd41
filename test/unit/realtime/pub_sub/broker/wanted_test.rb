# frozen_string_literal: true

require "test_helper"

class BrokerWantedTest < Minitest::Test
  include Fairlead::Test::Waiting

  PING = [:ping].freeze

  def setup
    @wanted = Fairlead::PubSub::Broker::Wanted.new
    connect(:first)
  end

  def test_what_has_changed_is_said_once_a_kind_at_a_time
    %w[a b].each { |name| add(name) }
    %w[p* s*].each { |name| @wanted.add([name, :redis], [:pattern, name]) }
    add("c")

    assert_equal [subscribe(*%w[a b c]), [:subscribe, :pattern, "p*", "s*"], PING], said(3)

    [["a", nil], ["s*", :redis]].each { |subscription| @wanted.remove(subscription) }
    assert_equal [unsubscribe("a"), [:unsubscribe, :pattern, "s*"], PING], said(3)
  end

  def test_what_comes_and_goes_before_it_is_said_is_not_said
    add("a")
    remove("a")
    remove("never")

    assert_equal [PING], said(1)
  end

  def test_many_names_are_said_in_several_commands
    names = Array.new(1000, &:to_s)
    names.each { |name| add(name) }
    commands = said(5)

    assert_equal names, commands.flat_map { |verb, _, *batch| verb == :subscribe ? batch : flunk(verb) }
    assert_equal [PING], said(1)
  end

  def test_a_new_connection_is_told_what_is_wanted_now
    %w[a b].each { |name| add(name) }
    said(1)
    remove("a")
    connect(:second)

    refute_predicate @wanted, :recovered?
    assert_equal [subscribe("b")], said(1)
    @wanted.confirm
    assert_predicate @wanted, :recovered?
  end

  def test_without_a_connection_nothing_is_said
    add("a")
    @wanted.disconnect
    thread = Thread.new { @wanted.next_batch(0) }
    refute thread.join(0.05)
    @wanted.reset(:second)

    assert_equal %i[second ping], [thread.value.first, thread.value.last.verb]
  end

  def test_a_confirmation_counts_for_the_command_that_asked_for_it
    add("a")
    refute_confirmed "a"
    said(1)
    remove("a")
    said(1)
    add("a")
    said(1)
    2.times { @wanted.confirm } # for the first command, and for the end
    refute_confirmed "a"
    @wanted.confirm
    assert_confirmed "a"

    connect(:second)
    refute_confirmed "a"
  end

  def test_names_of_one_command_are_confirmed_one_by_one
    %w[a b].each { |name| add(name) }
    said(1)
    @wanted.confirm
    assert_confirmed "a"
    refute_confirmed "b"
  end

  def test_one_of_several_that_is_refused_does_not_keep_the_others_out
    %w[a b c].each { |name| add(name) }
    said(1)
    @wanted.refuse { flunk("the refused name is not known yet") }
    assert_equal [*%w[a b c].map { |name| subscribe(name) }, PING], said(4)
    refused = []
    @wanted.confirm
    @wanted.refuse { |name| refused << name }
    @wanted.confirm

    assert_equal %w[b], refused
    %w[a b c].each { |name| assert_confirmed name }
  end

  def test_what_the_broker_rejects_is_not_told_to_it_again_until_it_is_wanted_anew
    %w[a b].each { |name| add(name) }
    said(1)
    rejected = []
    2.times { @wanted.reject([:channel, "a"]) { |name| rejected << name } }
    assert_equal %w[a], rejected
    assert_confirmed "a"

    connect(:second)
    assert_equal [subscribe("b"), PING], said(2)
    remove("a")
    add("a")
    assert_equal [subscribe("a")], said(1)
  end

  def test_one_who_waits_goes_on_when_it_is_confirmed_or_there_is_no_hope
    %w[a other].each { |name| add(name) }
    said(1)
    hope = true
    first, second = %w[a other].map { |name| Thread.new { @wanted.wait_for([name, nil], 60) { hope } } }
    @wanted.confirm
    assert first.join(10)

    assert_predicate second, :alive?
    hope = false
    @wanted.disconnect
    assert second.join(10)
  end

  def test_what_nobody_wants_is_not_waited_for
    assert_confirmed "never"
  end

  # Cost of one change, as a multiple of the cost with a tenth as many entries.
  def test_a_change_costs_the_same_however_many_entries_there_are
    few, many = [2_000, 20_000].map do |count|
      connect(:next)
      count.times { |number| add("#{count}-#{number}") }
      said((count / 200) + 10) # including the earlier ones
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      500.times { |number| add("#{count}-more-#{number}").then { said(1) } }
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - before
    end

    assert_operator many / few, :<, 5
  end

  private

  def connect(name)
    @wanted.reset(name)
    assert_equal [PING], said(1)
    @wanted.confirm
  end

  def add(name) = @wanted.add([name, nil], [:channel, name])
  def remove(name) = @wanted.remove([name, nil])
  def subscribe(*names) = [:subscribe, :channel, *names]
  def unsubscribe(*names) = [:unsubscribe, :channel, *names]

  def said(count) = Array.new(count) { words(@wanted.next_batch(0).last) }
  def words(batch) = batch.verb == :ping ? PING : [batch.verb, batch.kind, *batch.names]

  # With a timeout of zero there is no wait; the block runs only for an unconfirmed name.
  def assert_confirmed(name) = assert(confirmed?(name))
  def refute_confirmed(name) = refute(confirmed?(name))

  def confirmed?(name)
    asked = false
    @wanted.wait_for([name, nil], 0) { asked = true }
    !asked
  end
end
