# frozen_string_literal: true

require "minitest/mock"
require "test_helper"
require "fairlead/process/serving"

# A replaced worker waits for threads and tasks of the application. Each look at a large heap takes a while.
class WaitingForWorkTest < Minitest::Test
  # Seconds of a look.
  LOOK = 0.125

  class Process
    include Fairlead::Serving

    public :wait_for_work

    attr_reader :time

    def initialize = @time = 0

    def sleep(seconds) = @time += seconds

    def look
      @time += LOOK
      true
    end
  end

  def test_looks_take_a_small_part_of_the_time
    process = Process.new
    looks = 0
    Fairlead::Clock.stub(:now, -> { process.time }) do
      Fairlead::ForkSafety.stub(:busy?, -> { process.look.tap { looks += 1 } }) { process.wait_for_work }
    end

    assert_operator process.time, :>=, Fairlead::Serving::WORK_PATIENCE
    assert_includes 1..(process.time * 0.05 / LOOK), looks
  end
end
