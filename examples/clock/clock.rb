# frozen_string_literal: true

require "json"

# The stream behind the page, GET /ticks: an event each second, whose id is the second it stands for. Every worker has a
# timer of its own and publishes to its own clients only, so that nobody gets a tick per worker.
class Clock
  CHANNEL = "clock/ticks"
  EARLY = 0.1 # seconds that a tick may come before its second has begun

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

  # The handler of every stream; it needs to remember nothing, so one is enough for all. Without the block, the messages
  # of the channel would go to the client without Ruby: as events that have neither a name nor an id.
  module Listener
    RETRY = 1_000 # milliseconds until a browser that has lost its stream asks again

    def self.on_open(client)
      last = Integer(client.env.fetch("HTTP_LAST_EVENT_ID", ""), 10, exception: false)
      client.write(JSON.generate(worker: Process.pid, last: last), event: "hello", retry: RETRY)
      client.subscribe(CHANNEL) { |_channel, second| client.write(second, event: "tick", id: second) }
    end
  end
end
