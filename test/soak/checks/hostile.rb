# frozen_string_literal: true

# 2,000 clients that trickle a request head, 200 that trickle a body, 200 that never read a large response. Well-behaved
# clients are served nearly as fast as without them, memory stays small, and every slow client meets its own timeout: 408 for
# heads and bodies (RFC 9110 §15.5.9), a reset for unread responses.
require_relative "support/disturbance"

HEADS = 2_000
BODIES = 200
READERS = 200
TIME_OUT = 6
SCENARIO = Bench::Scenario.new(
  "hostile",
  about: "A short answer at / and 9 MB at /large.",
  app: <<~RUBY,
    PATH = File.expand_path("large.bin", __dir__)
    SIZE = File.size(PATH).to_s.freeze
    BODY = ("x" * 120 + "\\n").freeze
    run(lambda do |env|
      next [200, { "content-type" => "text/plain" }, [BODY]] unless env["PATH_INFO"] == "/large"

      [200, { "content-type" => "application/octet-stream", "content-length" => SIZE }, File.open(PATH, "rb")]
    end)
  RUBY
  answer_bytes: 121,
  files: { "large.bin" => 9_000_000 },
  shapes: [],
  metrics: []
)

def show_endings(check, kind, endings)
  check.show("#{kind}: ends of connections", endings.map { |how, count| "#{how} × #{count}" }.join(", "))
end

def judge_slow(check, kind, found)
  endings = found["endings"]
  show_endings(check, kind, endings)
  check.at_least("#{kind}: share answered 408", endings.fetch("408", 0).fdiv([endings.values.sum, 1].max), 1.0)
  check.at_least("#{kind}: shortest life", found["shortest"] || 0.0, TIME_OUT - 1.0, "s")
  check.at_most("#{kind}: longest life", found["longest"], TIME_OUT + GRACE, "s")
end

Fairlead::Soak::Check.run("hostile clients") do |check|
  limits = ["--head-timeout", "--body-timeout", "--write-timeout"].flat_map { |flag| [flag, TIME_OUT.to_s] }
  became = disturb(check, SCENARIO, options: limits, attackers: "attackers.rb", numbers: [HEADS, BODIES, READERS], seconds: TIME_OUT + GRACE)

  judge_slow(check, "heads", became["heads"])
  judge_slow(check, "bodies", became["bodies"])
  show_endings(check, "readers", became["readers"]["endings"])
  check.at_most("memory the kernel still holds for sockets", became["socket_memory"], 100.0, "MiB") if became["socket_memory"]
  check.at_least("readers: cut off", became["readers"]["endings"].values_at("closed", "reset").compact.sum, READERS)
end
