# frozen_string_literal: true

require "json"

# The stream of the page, GET /ticks: an event each second, with that second as its id. Every worker has its own timer and
# publishes to its own clients only, so that no client gets a tick from each worker.
class Clock
  CHANNEL = "clock/ticks"
  EARLY = 0.1 # a tick may come that many seconds before its second begins

  def initialize
    Fairlead.run_after(1 - (Time.now.to_f % 1)) do # so that the clocks of all workers tick together
      tick
      Fairlead.run_every(1) { tick }
    end
  end

  def call(env)
    return answer(404, "There is nothing here.") unless env["PATH_INFO"] == "/ticks"
    return answer(406, "This is a stream: ask with accept: text/event-stream.") unless env["rack.upgrade?"] == :sse

    env["rack.upgrade"] = Listener
    [200, {}, []]
  end

  private

  def tick
    Fairlead.publish(CHANNEL, (Time.now.to_f + EARLY).floor.to_s, Fairlead::PubSub::PROCESS)
  end

  def answer(status, text) = [status, { "content-type" => "text/plain; charset=utf-8" }, ["#{text}\n"]]

  # The handler of every stream. It has no state, so one is enough. Without the block, the server would send the messages of
  # the channel without Ruby: as events without name and id.
  module Listener
    RETRY = 1_000 # milliseconds until a browser reconnects after it has lost its stream

    def self.on_open(client)
      last = Integer(client.env.fetch("HTTP_LAST_EVENT_ID", ""), 10, exception: false)
      client.write(JSON.generate(worker: Process.pid, last: last), event: "hello", retry: RETRY)
      client.subscribe(CHANNEL) { |_channel, second| client.write(second, event: "tick", id: second) }
    end
  end
end
