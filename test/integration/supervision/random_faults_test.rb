# frozen_string_literal: true

require "test_helper"
require "soak/faults"

# A few rounds of test/soak/checks/supervision.rb. FAIRLEAD_FAULTS_SEED repeats the faults of a seed.
class RandomFaultsTest < Minitest::Test
  ROUNDS = 12

  def test_the_server_is_whole_after_each_round
    seed = ENV["FAIRLEAD_FAULTS_SEED"]
    faults = Fairlead::Soak::Faults.new(**{ seed: seed&.to_i }.compact)
    problems = faults.run(ROUNDS)

    assert_empty problems, "seed #{faults.seed}\n#{faults.log}"
    assert_operator faults.answered, :>, ROUNDS
  end
end
