# frozen_string_literal: true

require "test_helper"
require "support/http2_commands"
require "support/http_client"
require "support/rack_apps"
require "support/restarts"

# Sessions of a worker that is replaced: requests go elsewhere, and WebSockets stay with it for `long_drain`.
class Http2RestartsTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::RackApps
  include Fairlead::Test::Restarts

  HANDLER = "class Handler\ndef on_message(client, data) = client.write(data + Process.pid.to_s)\nend"
  APP = <<~'RUBY'
    env["rack.upgrade"] = Handler.new if env["rack.upgrade?"]
    [200, {}, [Process.pid.to_s]]
  RUBY

  # Sends "a" as soon as it is open and once the file `restarted` exists; notes replies and the close code.
  CLIENT = <<~'JS'
    const stream = session.request({ ":method": "CONNECT", ":protocol": "websocket", ":path": "/", "sec-websocket-version": "13" }, { endStream: false })
    const hello = () => stream.write(Buffer.from([0x81, 0x81, 0, 0, 0, 0, 97]))
    const seen = []
    session.once("goaway", () => seen.push("goaway"))
    stream.on("response", hello)
    stream.on("data", data => {
      if ((data[0] & 15) === 8) return say([seen, data.readUInt16BE(2)])
      seen.push(data.subarray(2).toString())
      if (seen.length === 1) require("fs").writeFileSync(path("open"), "")
    })
    const timer = setInterval(() => { if (require("fs").existsSync(path("restarted"))) { clearInterval(timer); hello() } }, 20)
  JS

  def test_web_sockets_stay_and_close_with_1012_in_the_last_part_of_the_time
    server = serve(unlinted(APP, setup: HANDLER), "-w", 1, bind: nil, files: { "config/fairlead.rb" => <<~RUBY })
      bind "tcp://127.0.0.1:0"
      worker_settle_time 0.2
      long_drain 11
      drain_spread 1
      shutdown_timeout 1
    RUBY
    pid = server.worker_pids.first
    seen, code = node_meanwhile(server, "const path = name => #{server.path("").to_json} + '/' + name\n#{CLIENT}") do
      wait_until("the WebSocket") { File.exist?(server.path("open")) }
      server.signal(:USR1)
      restarted(server)
      server.write("restarted", "")
    end

    assert_equal [["a#{pid}", "goaway", "a#{pid}"], 1012], [seen, code]
    wait_until("the end of its worker") { server.worker_pids.none?(pid) }
    assert_empty server.stderr
  end
end
