# frozen_string_literal: true

require "test_helper"
require "support/action_cable"
require "support/http2_commands"

# Action Cable over HTTP/2: several clients on one connection.
class CableOverHttp2Test < Minitest::Test
  include Fairlead::Test::ActionCableServing
  include Fairlead::Test::Http2Commands

  # Text frames that are masked with zeros, or not masked and short.
  CLIENT = <<~'JS'
    const offered = new Promise(done => session.on("remoteSettings", settings => done(settings.enableConnectProtocol)))
    const connect = (name, fields = {}) => {
      const stream = session.request({
        ":method": "CONNECT", ":protocol": "websocket", ":path": `/cable?name=${name}`, "sec-websocket-version": "13",
        origin: "http://good.example", "sec-websocket-protocol": "actioncable-v1-json, actioncable-unsupported", ...fields
      }, { endStream: false })
      let received = Buffer.alloc(0), waiting = null
      const next = () => {
        if (received.length < 2) return null
        const long = received[1] === 126, start = long ? 4 : 2
        if (received.length < start) return null
        const end = start + (long ? received.readUInt16BE(2) : received[1])
        if (received.length < end) return null
        const text = received.subarray(start, end).toString()
        received = received.subarray(end)
        return text
      }
      const give = () => {
        if (!waiting) return
        const text = next()
        if (text === null) return
        const message = JSON.parse(text)
        if (message.type === "ping") return give()
        const done = waiting
        waiting = null
        done(message)
      }
      stream.on("data", piece => { received = Buffer.concat([received, piece]); give() })
      return {
        head: new Promise(done => stream.on("response", done)),
        hear: () => new Promise(done => { waiting = done; give() }),
        tell: message => {
          const data = Buffer.from(JSON.stringify(message))
          const head = data.length < 126 ? Buffer.from([0x81, 0x80 | data.length]) : Buffer.from([0x81, 0xfe, data.length >> 8, data.length & 255])
          stream.write(Buffer.concat([head, Buffer.alloc(4), data]))
        },
        end: new Promise(done => stream.on("close", done))
      }
    }
    const room = JSON.stringify({ channel: "RoomChannel" })
  JS

  def test_clients_of_one_connection_talk_to_each_other
    seen = node(cable, CLIENT + <<~'JS')
      offered.then(async () => {
        const clients = ["ann", "bob"].map(name => connect(name)), heads = await Promise.all(clients.map(one => one.head))
        const first = [heads.map(head => [head[":status"], head["sec-websocket-protocol"]])]
        for (const client of clients) {
          first.push(await client.hear())
          client.tell({ command: "subscribe", identifier: room })
          first.push((await client.hear()).type)
        }
        clients[1].tell({ command: "message", identifier: room, data: JSON.stringify({ action: "speak", text: "hello" }) })
        say([...first, (await ask("/"))[2], ...await Promise.all(clients.map(async one => (await one.hear()).message))])
      })
    JS

    subscription = [{ "type" => "welcome" }, "confirm_subscription"]
    assert_equal [[[200, "actioncable-v1-json"]] * 2, *subscription, *subscription, "page", *([{ "from" => "bob", "text" => "hello" }] * 2)], seen
  end

  def test_a_wrong_origin_finds_no_page
    assert_equal 404, node(cable, "#{CLIENT}offered.then(async () => say((await connect('ann', { origin: 'http://evil.example' }).head)[':status']))")
  end

  def test_a_stream_that_is_reset_is_a_client_that_leaves
    server = cable
    node(server, CLIENT + <<~'JS')
      offered.then(async () => {
        const client = connect("ann")
        await client.hear()
        client.tell({ command: "subscribe", identifier: room })
        say((await client.hear()).type)
      })
    JS

    wait_until("its end") { File.exist?(server.path("left")) }
  end
end
