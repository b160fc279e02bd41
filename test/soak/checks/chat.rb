# frozen_string_literal: true

# A chat of 1,000 clients over four workers: every client gets every one of 1,000 messages exactly once, each sender's
# messages in order. Then a worker is killed in the middle of a conversation: clients in other workers lose no message, and
# its own clients reconnect and continue.
require_relative "../check"
require_relative "../../support/web_socket/pool"

CLIENTS = 1_000
SENDERS = 10
MESSAGES = 1_000
SURVIVED = 500
SHAPE = Bench::Shape.new(workers: 4, threads: 2, connections: CLIENTS)

# Publishes every message; a client first gets the id of its worker.
SCENARIO = Bench::Scenario.new(
  "chat",
  about: "A WebSocket message is published to every client.",
  app: <<~RUBY,
    class Chat
      def on_open(client)
        client.subscribe("room")
        client.write(Process.pid.to_s)
      end

      def on_message(client, data)
        client.publish("room", data)
      end
    end

    run(lambda do |env|
      env["rack.upgrade"] = Chat.new if env["rack.upgrade?"] == :websocket
      [200, { "content-type" => "text/plain" }, ["chat\\n"]]
    end)
  RUBY
  answer_bytes: 5,
  shapes: [],
  metrics: []
)

Pool = Fairlead::Test::WebSocket::Pool

# Connects clients that have reported their worker: a Pool, and its clients by the worker's id.
def join(running, count)
  pool = Pool.connect(count, "127.0.0.1", running.port)
  [pool, pool.zip(pool.receive_all(1, 60).flatten.map(&:to_i)).group_by(&:last).transform_values { |pairs| pairs.map(&:first) }]
end

# Number of texts that were the next one of their sender: MESSAGES if all came once and in order.
def in_order(texts)
  due = Hash.new(0)
  texts.count do |text|
    sender, number = text.split.map(&:to_i)
    number == due[sender] && due[sender] += 1
  end
end

def seconds
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
end

# All writers send in turn, as fast as the slowest client receives.
def converse(pool, senders, count)
  (0...count).each_slice(SENDERS * 5) do |numbers|
    numbers.each { |number| senders[number % senders.size].send_text("#{number % senders.size} #{number / senders.size}") }
    pool.wait_for("message #{numbers.last}", 60) { pool.all? { |client| client.messages.size > numbers.last || client.over? } }
    yield numbers.last if block_given?
  end
end

def exactly_once(check, running)
  pool, by_worker = join(running, CLIENTS)
  senders = pool.first(SENDERS)
  taken = seconds { converse(pool, senders, MESSAGES) }
  pool.wait_for("duplicate messages", 60) { senders.all? { |client| client.socket.wait_readable(0.5).nil? } }
  received = pool.map { |client| client.messages.map(&:last) }

  check.show("clients in each worker", by_worker.values.map(&:size).join(", "))
  check.at_least("workers with clients", by_worker.size, SHAPE.workers)
  check.at_least("clients with all #{MESSAGES} messages in order", received.count { |texts| in_order(texts) == MESSAGES }, CLIENTS)
  check.at_most("duplicate messages received", received.sum(&:size) - (CLIENTS * MESSAGES), 0)
  check.show("deliveries", CLIENTS * MESSAGES / taken, "/s")
ensure
  pool&.drop
end

def killed_worker(check, running)
  pool, by_worker = join(running, CLIENTS)
  victim, *others = by_worker.keys
  survivors = Pool.new(by_worker.values_at(*others).flatten)
  converse(survivors, survivors.first(SENDERS), SURVIVED) { |number| Process.kill(:KILL, victim) if number + 1 == SURVIVED / 2 }
  check.at_least("kill -9: clients of other workers without a loss",
                 survivors.count { |client| in_order(client.messages.map(&:last)) == SURVIVED }, survivors.clients.size)

  lost = by_worker.fetch(victim)
  again, = join(running, lost.size)
  survivors.first.send_text("0 0")
  check.at_least("kill -9: clients of that worker that reconnected and continued", again.receive_all(1, 60).flatten.count("0 0"), lost.size)
ensure
  [pool, again].compact.each(&:drop)
end

Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
Fairlead::Soak::Check.run("chat") do |check|
  check.serve(SCENARIO, SHAPE) do |running|
    exactly_once(check, running)
    killed_worker(check, running)
  end
end
