# frozen_string_literal: true

# Two workers of two threads with more requests than threads, over HTTP/1 and over HTTP/2, so that the waiting room is never
# empty. Messages of WebSockets, first events of event streams and deferred blocks take turns with the requests: none waits
# much longer than a request does.
require_relative "../check"
require_relative "../../support/web_socket"
require_relative "../../support/event_stream"

SECONDS = 5
CLIENTS = 40
SHAPE = Bench::Shape.new(workers: 2, threads: 2, connections: CLIENTS)

# Protocols of the requests => options of the load tool.
LOADS = { "HTTP/1" => {}, "HTTP/2" => { connections: 4, streams: 10 } }.freeze

# Kinds of event => number of turns that they take, where a request takes one.
TURNS = { "a message" => 1, "a deferred block" => 2, "the first event of a stream" => 2 }.freeze

SCENARIO = Bench::Scenario.new(
  "callbacks",
  about: "Requests of 10 ms beside WebSockets, event streams and deferred blocks.",
  app: <<~RUBY,
    class Echo
      def on_open(client) = client.protocol == :sse && client.write("open")

      def on_message(client, data)
        data == "defer" ? Fairlead.defer { client.write("deferred") } : client.write(data)
      end
    end

    run(lambda do |env|
      if env["rack.upgrade?"]
        env["rack.upgrade"] = Echo.new
      else
        sleep 0.01
      end
      [200, { "content-type" => "text/plain" }, ["served\\n"]]
    end)
  RUBY
  answer_bytes: 7,
  shapes: [],
  metrics: []
)

def milliseconds
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) * 1000
end

# Name => wait of each event during the load.
def waits(running, load)
  sockets = Array.new(4) { Fairlead::Test::WebSocket.connect("127.0.0.1", running.port) }
  found = TURNS.to_h { |name, _| [name, []] }
  sockets.cycle do |socket|
    break unless load.alive?

    found["a message"] << milliseconds { socket.send_text("message") && socket.receive }
    found["a deferred block"] << milliseconds { socket.send_text("defer") && socket.receive }
    found["the first event of a stream"] << milliseconds do
      stream = Fairlead::Test::EventStream.connect("127.0.0.1", running.port)
      stream.receive
      stream.drop
    end
  end
  found
ensure
  sockets&.each { |socket| socket.socket.close }
end

Fairlead::Soak::Check.run("callbacks") do |check|
  check.serve(SCENARIO, SHAPE) do |running|
    LOADS.each do |version, extent|
      load = Thread.new { check.load(running, SHAPE, seconds: SECONDS, **extent) }
      found = waits(running, load)
      longest = load.value.percentile(100)
      check.show("#{version}: longest wait of a request", longest, "ms")
      TURNS.each do |name, turns|
        check.at_most("#{version}: longest wait for #{name} ÷ (#{turns} × longest wait of a request)", found[name].max / (turns * longest), 2.0)
      end
      check.at_least("#{version}: of each in #{SECONDS} s", found.values.map(&:size).min, SECONDS)
      check.at_most("#{version}: errors", load.value.error_count, 0)
    end
  end
end
