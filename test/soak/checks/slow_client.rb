# frozen_string_literal: true

# A broadcast to 200 clients of which 20 read nothing: the readers get every message as fast as without the others, the
# server's buffers for the others stay within their limit, and it closes them with code 1013.
require_relative "../check"
require_relative "../../support/web_socket/pool"

QUICK = 180
SLOW = 20
MESSAGES = 1_000
SIZE = 10_000
LIMIT = 1_000_000
SHAPE = Bench::Shape.new(workers: 1, threads: 2, connections: QUICK + SLOW)

SCENARIO = Bench::Scenario.new(
  "slow client",
  about: "A WebSocket message is published to every client.",
  app: <<~RUBY,
    module Broadcast
      def self.on_open(client) = client.subscribe("all") && client.write("ready")
      def self.on_message(client, data) = client.publish("all", data)
    end

    run(lambda do |env|
      env["rack.upgrade"] = Broadcast if env["rack.upgrade?"] == :websocket
      [200, { "content-type" => "text/plain" }, ["broadcast\\n"]]
    end)
  RUBY
  answer_bytes: 10,
  shapes: [],
  metrics: []
)

Pool = Fairlead::Test::WebSocket::Pool

# A connected client that reads nothing, with a tiny receive buffer.
def slow_client(port)
  socket = Socket.new(:INET, :STREAM)
  socket.setsockopt(:SOCKET, :RCVBUF, 4096)
  socket.connect(Addrinfo.tcp("127.0.0.1", port))
  Fairlead::Test::WebSocket.over(socket).tap(&:receive)
end

# Broadcasts as fast as the readers read; yields after each portion. Returns the seconds that it took.
def broadcast(quick, offset)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  (0...MESSAGES).each_slice(20) do |numbers|
    numbers.each { |number| quick.first.send_text("#{number} ".ljust(SIZE, "x")) }
    quick.wait_for("message #{numbers.last}", 60) { quick.all? { |client| client.messages.size > offset + numbers.last } }
    yield
  end
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
end

# Clients that got all of the newest messages, in order.
def whole(quick)
  quick.count { |client| client.messages.map { |_, text| text.to_i } == (0...MESSAGES).to_a }
end

Fairlead::Soak::Check.run("slow client") do |check|
  check.serve(SCENARIO, SHAPE, options: ["--client-pending-bytes", LIMIT.to_s]) do |running|
    quick = Pool.connect(QUICK, "127.0.0.1", running.port)
    quick.receive_all(1)
    alone = broadcast(quick, 0) { nil }
    check.at_least("alone: clients with all messages", whole(quick), QUICK)
    quick.each { |client| client.messages.clear }

    slow = Array.new(SLOW) { slow_client(running.port) }
    before = running.group.memory_kib
    most = before
    beside = broadcast(quick, 0) { most = [most, running.group.memory_kib].compact.max }
    check.at_least("beside #{SLOW} that do not read: clients with all messages", whole(quick), QUICK)
    check.at_least("time alone ÷ beside them", alone / beside, 0.8)
    check.at_most("memory added (PSS)", (most - before) / 1024.0, (SLOW * LIMIT / 1_048_576.0) + 10.0, "MiB") if before
    codes = slow.map { |client| client.receive_close(60, skip: true).first }
    check.at_least("let go with 1013", codes.count(1013), SLOW)
    check.at_least("their connections ended", slow.count(&:ended?), SLOW)
    [*quick, *slow].each(&:drop)
  end
end
