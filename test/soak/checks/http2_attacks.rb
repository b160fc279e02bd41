# frozen_string_literal: true

# Attacks on HTTP/2, one after another, by a client that reconnects when it is disconnected. The server sends it the reason
# and counts the attack. Well-behaved clients, with HTTP/1.1 and HTTP/2, are served as fast as without the attack, and memory
# stays constant.
require "net/http"
require_relative "support/disturbance"
require_relative "support/steady_clients"

SECONDS = 2
ROUNDS = 2
TIME_OUT = 2

# Attacks that lose their connection: the code of the GOAWAY (RFC 9113 §7), and the counter.
ENDED = {
  "rapid_reset" => [11, "http2_reset_floods"],
  "window_overflow" => [11, "http2_provoked_reset_floods"],
  "too_much_content" => [11, "http2_provoked_reset_floods"],
  "malformed" => [11, "http2_provoked_reset_floods"],
  "dependent_on_itself" => [11, "http2_provoked_reset_floods"],
  "settings" => [11, "http2_settings_floods"],
  "pings" => [11, "http2_ping_floods"],
  "priorities" => [11, "http2_priority_floods"],
  "unknown_frames" => [11, "http2_priority_floods"],
  "window_updates" => [11, "http2_window_floods"],
  "windows_by_bytes" => [11, "http2_window_floods"],
  "empty_data" => [11, "http2_empty_data_floods"],
  "continuations" => [11, "http2_continuation_floods"],
  "field_bomb" => [11, "http2_violations"],
  "garbage" => [6, "http2_violations"],
  "never_reads" => [nil, "http2_slow"]
}.freeze

# Attacks that get a response on each stream.
BORNE = %w[crumbs closed_windows endless_bodies].freeze

SCENARIO = Bench::Scenario.new(
  "http2-attacks",
  about: "A short answer after 5 ms, 20 kB at /page, 2 MB at /large, and the statistics.",
  app: <<~RUBY,
    require "json"
    BODY = ("x" * 120 + "\\n").freeze
    PAGE = ("x" * 20_000).freeze
    LARGE = ("x" * 2_000_000).freeze
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/page" then [200, { "content-length" => PAGE.bytesize.to_s }, [PAGE]]
      when "/large" then [200, { "content-length" => LARGE.bytesize.to_s }, [LARGE]]
      when "/statistics" then [200, {}, [JSON.generate(Fairlead.stats[:engines].first)]]
      else
        sleep 0.005
        [200, { "content-type" => "text/plain", "content-length" => BODY.bytesize.to_s }, [BODY]]
      end
    end)
  RUBY
  answer_bytes: 121,
  shapes: [],
  metrics: []
)

# Rates of the well-behaved clients beside a program that only computes and beside the attacker, in turn, and the ends of the
# attacker's connections.
def measure(running, clients, attack)
  endings = Hash.new(0)
  rates = Array.new(ROUNDS) do
    calm = nil
    stormy = nil
    under_attack(running, "http2_attackers.rb", "none", seconds: SECONDS) { calm = clients.rates(SECONDS) }
    found = under_attack(running, "http2_attackers.rb", attack, seconds: SECONDS + TIME_OUT) { stormy = clients.rates(SECONDS) }
    found["endings"].each { |how, count| endings[how] += count }
    [calm, stormy]
  end
  [rates.transpose, endings]
end

def share(rates, protocol)
  calm, stormy = rates.map { |all| all.sum { |each| each[protocol] } }
  stormy / calm
end

def statistics(running) = JSON.parse(Net::HTTP.get(URI(running.url("/statistics"))))

def judge(check, running, clients, attack)
  before = statistics(running)
  rates, endings = measure(running, clients, attack)
  %i[http1 http2].each { |protocol| check.at_least("#{attack}: #{protocol} meanwhile ÷ undisturbed", share(rates, protocol), 0.9) }
  check.show("#{attack}: ends of connections", endings.map { |how, count| "#{how} × #{count}" }.join(", "))
  code, counter = ENDED[attack]
  return unless counter

  check.at_least("#{attack}: #{counter}", statistics(running)[counter] - before[counter], 1)
  check.at_least("#{attack}: told GOAWAY #{code}", endings["GOAWAY #{code}"], 1) if code
end

Fairlead::Soak::Check.run("attacks on HTTP/2") do |check|
  shape = Bench::Shape.parse("1x5")
  limits = ["--head-timeout", "--body-timeout", "--write-timeout"].flat_map { |flag| [flag, TIME_OUT.to_s] }
  check.serve(SCENARIO, shape, options: limits) do |running|
    clients = SteadyClients.new(running.port, http1: 2, http2: 1)
    measure(running, clients, "closed_windows")
    before = running.group.memory_kib
    chosen = ENV["FAIRLEAD_SOAK_ATTACKS"]&.split(",") || [*ENDED.keys, *BORNE]
    most = peak_memory(running) { chosen.each { |attack| judge(check, running, clients, attack) } }
    clients.finish
    check.at_most("disconnected well-behaved clients", clients.failures, 0)
    check.at_most("memory added by all attacks (PSS)", (most - before) / 1024.0, 32.0, "MiB") if before && most
  end
end
