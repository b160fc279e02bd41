# frozen_string_literal: true

# Clients that use up shared budgets, over HTTP/1 and HTTP/2: responses and event streams that they do not read, request
# heads, uploads that stop, and incomplete WebSocket messages. Other clients must still be served and upload, and memory must
# stay within the totals.
require_relative "support/disturbance"
require_relative "support/large_application"
require_relative "support/steady_clients"

SECONDS = 4
MEBIBYTE = 1 << 20
TOTAL = 32

# Connections of each attack: with HTTP/1 and with HTTP/2.
ATTACKS = { "readers" => [300, 10], "pages" => [300, 30], "heads" => [300, 40], "uploads" => [200, 20],
            "messages" => [268, 120], "events" => [500, 60] }.freeze

# Attacks of long-lived clients: memory for other clients' messages and heads must remain.
CLIENTS = %w[messages events].freeze

# Least number of small requests per second for each kind of client: each connection of an attacker has turns, too.
LEAST = 0.25

# Longest time for an upload, in seconds. It shares the disk with the waiting responses.
UPLOAD = 10

# Memory beyond the totals of requests and responses, but including the total of long-lived clients: for the connections and
# streams themselves, and for the allocator.
MARGIN = 192

SCENARIO = Bench::Scenario.new(
  "budgets",
  about: "A short response after 5 ms, 170 kB at /page, 2 MB at /large, the length of a body or message, and 1 MiB for event streams.",
  app: LargeApplication.text(wait: 0.005),
  answer_bytes: 121,
  shapes: [],
  metrics: []
)

# Duration of an upload, in seconds.
def upload(running)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  socket = TCPSocket.new("127.0.0.1", running.port)
  socket.write("POST /upload HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 900000\r\n\r\n", "x" * 900_000)
  raise Bench::Error, "the upload failed" unless socket.read.end_with?("900000")

  Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
ensure
  socket&.close
end

# Seconds for a 200 kB message in two parts and its echo, and for a request with a 60 kB head. Nil if one of them is refused.
def large_messages(running)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  socket = TCPSocket.new("127.0.0.1", running.port)
  socket.write("GET /clients HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n",
               "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
  socket.gets("\r\n\r\n")
  socket.write([0x82, 0xff, 200_000, 0].pack("CCQ>L>"), "x" * 100_000)
  sleep 0.1
  socket.write("x" * 100_000)
  return unless socket.read(8) == "\x81\x06200000".b

  head = TCPSocket.new("127.0.0.1", running.port)
  head.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: #{"y" * 60_000}\r\n\r\n")
  head.read.start_with?("HTTP/1.1 200 ") ? Process.clock_gettime(Process::CLOCK_MONOTONIC) - started : nil
rescue SystemCallError
  nil
ensure
  [socket, head].each { |opened| opened&.close }
end

def judge(check, running, clients, name, (protocol, connections))
  before = running.group.memory_kib
  stormy = uploaded = answered = nil
  most = peak_memory(running) do
    found = under_attack(running, "budget_attackers.rb", name, protocol, connections, seconds: SECONDS) do
      stormy = clients.rates(SECONDS)
      uploaded = upload(running)
      answered = large_messages(running) if CLIENTS.include?(name)
    end
    check.show("#{name}, #{protocol}: ends of connections", found["endings"].map { |how, count| "#{how} × #{count}" }.join(", "))
  end
  stormy.each { |of, rate| check.at_least("#{name}, #{protocol}: small requests with #{of}", rate, LEAST, "/s") }
  check.at_most("#{name}, #{protocol}: an upload", uploaded, UPLOAD, "s")
  check.at_most("#{name}, #{protocol}: a large message and a large head", answered, UPLOAD, "s") if CLIENTS.include?(name)
  aim = CLIENTS.include?(name) ? MARGIN : (2 * TOTAL) + MARGIN
  check.at_most("#{name}, #{protocol}: memory added (PSS)", (most - before) / 1024.0, aim, "MiB") if before && most
end

Fairlead::Soak::Check.run("budgets") do |check|
  totals = ["--response-memory-total-bytes", TOTAL * MEBIBYTE, "--request-memory-total-bytes", TOTAL * MEBIBYTE].map(&:to_s)
  ATTACKS.each do |name, counts|
    %w[http1 http2].zip(counts).each do |attack|
      check.serve(SCENARIO, Bench::Shape.parse("1x5"), options: totals) do |running|
        clients = SteadyClients.new(running.port, http1: 2, http2: 1)
        judge(check, running, clients, name, attack)
        clients.finish
        check.at_most("#{name}, #{attack.first}: disconnected well-behaved clients", clients.failures, 0)
      end
    end
  end
end
