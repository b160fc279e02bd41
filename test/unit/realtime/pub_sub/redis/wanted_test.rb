# frozen_string_literal: true

require "test_helper"

begin
  require "redis"
rescue LoadError
  nil # a Ruby without it
end

class RedisWantedTest < Minitest::Test
  include Fairlead::Test::Waiting

  def setup
    skip "needs the gem redis" unless defined?(::Redis)

    @wanted = Fairlead::PubSub::Redis::Wanted.new
  end

  def test_what_has_changed_is_said_once_a_kind_at_a_time
    [["a", nil], ["p*", :redis], ["b", nil], ["s.>", :subject]].each { |name, match| @wanted.add(name, match) }

    assert_equal [:subscribe, %w[a b]], @wanted.next_command
    assert_equal [:psubscribe, %w[p* s.*]], @wanted.next_command
    assert_nil @wanted.next_command

    [["a", nil], ["s.>", :subject]].each { |name, match| @wanted.remove(name, match) }
    assert_equal [:unsubscribe, %w[a]], @wanted.next_command
    assert_equal [:punsubscribe, %w[s.*]], @wanted.next_command
    assert_nil @wanted.next_command
  end

  def test_what_comes_and_goes_before_it_is_said_is_not_said
    @wanted.add("a", nil)
    @wanted.remove("a", nil)
    @wanted.remove("never", nil)

    assert_nil @wanted.next_command
  end

  def test_a_new_connection_is_told_what_is_wanted_now
    %w[a b].each { |name| @wanted.add(name, nil) }
    @wanted.next_command
    @wanted.remove("a", nil)
    @wanted.reset

    assert_equal [:subscribe, %w[b]], @wanted.next_command
    assert_nil @wanted.next_command
  end

  def test_a_confirmation_is_waited_for_anew_each_time
    word = @wanted.add("a", nil)
    refute_confirmed word
    @wanted.next_command
    @wanted.confirm(word)
    assert_confirmed word

    @wanted.remove("a", nil)
    @wanted.next_command
    @wanted.confirm(word) # too late: it has been given up since
    @wanted.add("a", nil)
    refute_confirmed word
    @wanted.next_command
    @wanted.confirm(word)
    assert_confirmed word

    @wanted.reset
    refute_confirmed word
  end

  def test_one_who_waits_goes_on_when_it_is_confirmed_or_there_is_no_hope
    word = @wanted.add("a", nil)
    @wanted.next_command
    hope = true
    first, second = [word, [:channel, "other"]].map { |each| Thread.new { @wanted.wait_for(each, 60) { hope } } }
    @wanted.confirm(word)
    assert first.join(10)

    assert_predicate second, :alive?
    hope = false
    @wanted.interrupt
    assert second.join(10)
  end

  private

  # Nobody waits when the time is up at once; the block is asked only for what is not confirmed.
  def assert_confirmed(word) = assert(confirmed?(word))
  def refute_confirmed(word) = refute(confirmed?(word))

  def confirmed?(word)
    asked = false
    @wanted.wait_for(word, 0) { asked = true }
    !asked
  end
end
