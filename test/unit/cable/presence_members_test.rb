# frozen_string_literal: true

require "test_helper"

# Who is present: Fairlead::Cable::Presence::Members, which gets its clock from its caller.
class PresenceMembersTest < Minitest::Test
  Members = Fairlead::Cable::Presence::Members

  def setup
    @changes = []
    @members = Members.new { |*change| @changes << change }
  end

  def test_the_first_session_of_a_member_joins_and_the_last_one_leaves
    join("s1", "ann", { "name" => "Ann" })
    join("s2", "ann", { "name" => "A." })
    assert_equal({ "ann" => { "name" => "Ann" } }, @members.of("room"))
    @members.leave("s1", "room")
    assert_equal 1, @changes.size
    @members.leave("s2", "room")

    assert_equal [["room", :join, "ann", { "name" => "Ann" }], ["room", :leave, "ann", nil]], @changes
    assert_empty @members.of("room")
  end

  def test_a_member_has_the_info_of_its_first_session
    2.times do |number|
      join("s1", "ann", number)
      join("s2", "ann", "other")
    end
    assert_equal({ "ann" => 1 }, @members.of("room"))
    @members.leave("s1", "room")
    join("s2", "ann", "other")
    assert_equal({ "ann" => "other" }, @members.of("room"))
  end

  def test_a_session_has_one_id_in_a_stream
    assert join("s1", "ann")
    refute join("s1", "bob")
    assert join("s1", "bob", stream: "other")

    assert_equal [["ann"], ["bob"]], %w[room other].map { |stream| @members.of(stream).keys }
  end

  def test_an_ended_session_counts_for_a_while
    join("s1", "ann")
    @members.ended("s1", 100)
    @members.alive("p", 100)
    @members.expire(100 + Members::TTL - 1)
    assert_equal 1, @changes.size
    @members.expire(100 + Members::TTL)

    assert_equal ["room", :leave, "ann", nil], @changes.last
    refute @members.from?("p")
  end

  def test_another_session_in_time_replaces_it
    join("s1", "ann")
    @members.ended("s1", 100)
    join("s2", "ann")
    @members.alive("p", 200)
    @members.expire(200)

    assert_equal 1, @changes.size
    assert_equal ["ann"], @members.of("room").keys
  end

  def test_a_session_on_its_way_to_another_process_counts_until_it_arrives
    join("s1", "ann", process: "old")
    @members.moved("old", "s1", 100)
    @members.expire(100 + Members::MOVE - 1) # the old process is dead
    assert_empty @members.sessions_of("old")
    join("s1", "ann", process: "p")
    @members.alive("p", 100 + Members::MOVE)
    @members.expire(100 + Members::MOVE)

    assert_equal [["room", :join, "ann", nil]], @changes
    assert_equal [["room", "ann", nil, "s1"]], @members.sessions_of("p")
  end

  def test_a_session_that_has_arrived_already_stays
    join("s1", "ann", process: "old")
    join("s1", "ann", process: "p")
    @members.moved("old", "s1", 100)
    @members.alive("p", 100 + Members::MOVE)
    @members.expire(100 + Members::MOVE)

    assert_equal 1, @changes.size
    assert @members.from?("p")
  end

  def test_a_session_that_does_not_arrive_ends
    join("s1", "ann", process: "old")
    join("s2", "bob", process: "old")
    %w[s1 s2].each { |sid| @members.moved("old", sid, 100) }
    @members.alive("old", 100)
    @members.ended("s2", 100) # it has arrived, and was rejected
    @members.expire(100 + Members::TTL)
    assert_equal ["room", :leave, "bob", nil], @changes.last
    @members.expire(100 + Members::MOVE)

    assert_equal ["room", :leave, "ann", nil], @changes.last
    assert_nil @members.member("s1", "room")
  end

  def test_sessions_of_a_silent_process_end
    join("s1", "ann", process: "dead")
    join("s2", "bob", process: "alive")
    @members.alive("alive", 14)
    @members.expire(1 + Members::TTL)

    assert_equal [["room", :leave, "ann", nil]], @changes.drop(2)
    assert_equal [["room", "bob", nil, "s2"]], @members.sessions_of("alive")
  end

  def test_a_stop_of_this_process_ends_nothing
    join("s1", "ann")
    @members.stopped(1_000)
    @members.expire(1_000)

    assert_equal 1, @changes.size
    assert @members.alive("p", 1_001)
    refute @members.alive("other", 1_001)
  end

  def test_what_is_unknown_changes_nothing
    @members.leave("s1", "room")
    @members.ended("s1", 1)
    @members.expire(1_000)

    assert_empty @changes
  end

  private

  def join(sid, id, info = nil, stream: "room", process: "p") = @members.join([process, sid, stream], id, info, 0)
end
