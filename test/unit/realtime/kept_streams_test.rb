# frozen_string_literal: true

require "test_helper"

class KeptStreamsTest < Minitest::Test
  def setup
    @streams = Fairlead::KeptStreams.instance_variable_get(:@streams)
    Fairlead::KeptStreams.instance_variable_set(:@streams, @map = ObjectSpace::WeakMap.new)
  end

  def teardown
    Fairlead::KeptStreams.instance_variable_set(:@streams, @streams)
  end

  # As Ruby 3.1 has it if the entry of a dead stream has stayed.
  def test_other_objects_in_the_places_of_dead_streams_are_no_streams
    others = [+"text", [1], BasicObject.new]
    others.each { |other| @map[other] = other }

    assert_predicate Fairlead::KeptStreams, :none?
    refute Fairlead::KeptStreams.send(:left_by_writer?)
    assert_equal 3, others.size
  end

  def test_a_stream_is_found
    stream = Fairlead::Native::Stream.new
    @map[stream] = stream

    refute_predicate Fairlead::KeptStreams, :none?
    refute Fairlead::KeptStreams.send(:left_by_writer?), "it has no writer"
  end
end
