# frozen_string_literal: true

# Random faults in real processes: kills, stops and signals at random times under load. After each round the server is whole:
# it has the configured workers, no other process, no zombie and no more descriptors, and only requests of killed workers
# have failed.
#
#   ruby -Ilib test/soak/checks/supervision.rb 2000       # so many rounds, not 50
#   ruby -Ilib test/soak/checks/supervision.rb 2000 4711  # the same faults as with this seed
require_relative "../check"
require_relative "../faults"

ROUNDS, SEED = ARGV.grep(/\A\d+\z/).map(&:to_i)

Fairlead::Soak::Check.run("supervision") do |check|
  faults = Fairlead::Soak::Faults.new(**{ seed: SEED }.compact)
  warn "seed #{faults.seed}"
  done = 0
  faults.run(ROUNDS || 50) do |round|
    done = round + 1
    warn "  #{done} rounds, #{faults.answered} requests" if (done % 50).zero?
  end
  warn faults.log, faults.story, faults.problems if faults.problems.any?

  check.show("rounds (seed #{faults.seed})", done)
  check.show("requests", faults.answered)
  check.show("faults", faults.acts.values.sum)
  check.at_most("problems", faults.problems.size, 0)
end
