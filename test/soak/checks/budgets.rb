# frozen_string_literal: true

# Clients that use up what all share, over HTTP/1 and HTTP/2: responses that nobody reads, heads, and uploads that stop. Others
# are served meanwhile, upload meanwhile, and memory stays within the totals.
require_relative "support/disturbance"
require_relative "support/steady_clients"

SECONDS = 4
MEBIBYTE = 1 << 20
TOTAL = 32

# The connections of each attack: with HTTP/1 and with HTTP/2.
ATTACKS = { "readers" => [300, 10], "pages" => [300, 30], "heads" => [300, 40], "uploads" => [200, 20] }.freeze

# Small requests in a second that are served to each kind of client, at least: each connection of an attacker has turns, too.
LEAST = 0.25

# Most seconds that an upload may take. It shares the disk with the responses that wait.
UPLOAD = 10

# Beside the totals of requests and responses: what each connection and stream takes itself, and what the allocator keeps.
MARGIN = 192

SCENARIO = Bench::Scenario.new(
  "budgets",
  about: "A short answer after 5 ms, 170 kB at /page, 2 MB at /large, and the length of a body.",
  app: <<~RUBY,
    BODY = ("x" * 120 + "\\n").freeze
    PAGE = ("x" * 170_000).freeze
    LARGE = ("x" * 2_000_000).freeze
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/page" then [200, { "content-length" => PAGE.bytesize.to_s }, [PAGE]]
      when "/large" then [200, { "content-length" => LARGE.bytesize.to_s }, [LARGE]]
      when "/upload" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
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

# Seconds that an upload takes.
def upload(running)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  socket = TCPSocket.new("127.0.0.1", running.port)
  socket.write("POST /upload HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 900000\r\n\r\n", "x" * 900_000)
  raise Bench::Error, "the upload failed" unless socket.read.end_with?("900000")

  Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
ensure
  socket&.close
end

def judge(check, running, clients, name, (protocol, connections))
  before = running.group.memory_kib
  stormy = uploaded = nil
  most = peak_memory(running) do
    found = under_attack(running, "budget_attackers.rb", name, protocol, connections, seconds: SECONDS) do
      stormy = clients.rates(SECONDS)
      uploaded = upload(running)
    end
    check.show("#{name}, #{protocol}: how they ended", found["endings"].map { |how, count| "#{how} × #{count}" }.join(", "))
  end
  stormy.each { |of, rate| check.at_least("#{name}, #{protocol}: small requests with #{of}", rate, LEAST, "/s") }
  check.at_most("#{name}, #{protocol}: an upload", uploaded, UPLOAD, "s")
  check.at_most("#{name}, #{protocol}: memory added (PSS)", (most - before) / 1024.0, (2 * TOTAL) + MARGIN, "MiB") if before && most
end

Fairlead::Soak::Check.run("budgets") do |check|
  totals = ["--response-memory-total-bytes", TOTAL * MEBIBYTE, "--request-memory-total-bytes", TOTAL * MEBIBYTE].map(&:to_s)
  ATTACKS.each do |name, counts|
    %w[http1 http2].zip(counts).each do |attack|
      check.serve(SCENARIO, Bench::Shape.parse("1x5"), options: totals) do |running|
        clients = SteadyClients.new(running.port, http1: 2, http2: 1)
        judge(check, running, clients, name, attack)
        clients.finish
        check.at_most("#{name}, #{attack.first}: well-behaved clients that were disconnected", clients.failures, 0)
      end
    end
  end
end
