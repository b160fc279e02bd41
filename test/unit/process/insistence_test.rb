# frozen_string_literal: true

require "test_helper"

class InsistenceTest < Minitest::Test
  # A server that has been idle drains without having been asked.
  def test_the_first_signal_never_hurries
    %i[TERM INT HUP].each { |signal| refute Fairlead::Insistence.new.hurries?(signal) }
  end

  def test_a_second_int_hurries_and_a_term_right_after_it_does_not
    insistence = Fairlead::Insistence.new
    insistence.hurries?(:INT)

    refute insistence.hurries?(:TERM)
    refute insistence.hurries?(:stop)
    assert insistence.hurries?(:INT)
  end
end
