# frozen_string_literal: true

# 2,000 clients that send a ClientHello byte by byte, more than the limit of concurrent handshakes, and 200 that stop after
# their handshake. Well-behaved clients with TLS are served nearly as fast as without them, memory stays small, and every
# attacker is disconnected: in time, or because there were too many.
require_relative "support/disturbance"

HELLOS = 2_000
SILENT = 200
TIME_OUT = 6

SCENARIO = Bench::Scenario.new(
  "handshakes",
  about: "A short answer over TLS.",
  app: <<~RUBY,
    BODY = ("x" * 120 + "\\n").freeze
    run ->(_env) { [200, { "content-type" => "text/plain" }, [BODY]] }
  RUBY
  answer_bytes: 121,
  tls: { nil => Bench::Tls.new(certificate: "ECDSA P-256") },
  shapes: [],
  metrics: []
)

# Lifetime of connections of this kind: at least one must have ended, and none too late.
def judge(check, kind, found)
  check.show("#{kind}: ends of connections", found["endings"].map { |how, count| "#{how} × #{count}" }.join(", "))
  check.at_least("#{kind}: disconnected", found["endings"].values.sum, 1)
  check.at_most("#{kind}: longest life", found["longest"], TIME_OUT + GRACE, "s")
end

Fairlead::Soak::Check.run("handshakes that stop") do |check|
  limits = ["--handshake-timeout", "--head-timeout", "--keep-alive-timeout"].flat_map { |flag| [flag, TIME_OUT.to_s] }
  became = disturb(check, SCENARIO, options: limits, attackers: "handshake_attackers.rb", numbers: [HELLOS, SILENT], seconds: TIME_OUT + GRACE)

  judge(check, "handshakes", became["hellos"])
  judge(check, "silent ones", became["silent"])
end
