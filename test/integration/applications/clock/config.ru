# frozen_string_literal: true

# A clock: sends the time once a second to every client, over a WebSocket or an event stream.
require "fairlead/compat/iodine"

# Clients that are connected now.
module LiveList
  @clients = []
  @lock = Mutex.new

  class << self
    def add(client) = @lock.synchronize { @clients << client }
    def remove(client) = @lock.synchronize { @clients.delete(client) }
    def size = @lock.synchronize { @clients.size }

    def tell(text)
      @lock.synchronize { @clients.dup }.each { |client| client.write(text) }
    end
  end
end

# The page, and the stream that it listens to.
module Clock
  PAGE = <<~HTML
    <!DOCTYPE html>
    <title>Clock</title>
    <h1 id="time">--:--:--</h1>
    <script>
      new EventSource("/").onmessage = (event) => { document.getElementById("time").textContent = event.data };
    </script>
  HTML

  class << self
    def call(env)
      return [200, { "content-type" => "text/plain" }, [LiveList.size.to_s]] if env["PATH_INFO"] == "/size"
      return [200, { "content-type" => "text/html" }, [PAGE]] unless env["rack.upgrade?"]

      env["rack.upgrade"] = self
      [200, {}, []]
    end

    def on_open(client) = LiveList.add(client)
    def on_close(client) = LiveList.remove(client)
  end
end

Iodine.run_every(1000) { LiveList.tell(Time.now.strftime("%H:%M:%S")) }

run Clock
