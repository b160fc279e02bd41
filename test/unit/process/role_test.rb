# frozen_string_literal: true

require "test_helper"

class RoleTest < Minitest::Test
  # A role that becomes another one, several times.
  class Caterpillar
    include Fairlead::Role

    def initialize(left, depths)
      @left = left
      @depths = depths
    end

    def run
      @depths << caller.size
      @left.zero? ? 7 : become(Caterpillar.new(@left - 1, @depths))
    end
  end

  def test_the_last_role_gives_the_status_and_the_stack_does_not_grow
    depths = []

    assert_equal 7, Fairlead::Role.run(Caterpillar.new(5, depths))
    assert_equal [6, 1], [depths.size, depths.uniq.size]
  end
end
