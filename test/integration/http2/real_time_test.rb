# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/http2_commands"
require "support/rack_apps"

# WebSockets by extended CONNECT (RFC 8441) and event streams, as streams beside others.
class Http2RealTimeTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::RackApps

  SETUP = <<~'RUBY'
    class Handler
      def on_open(client) = client.write("open #{client.env["SERVER_PROTOCOL"]}")
      def on_message(client, data) = client.write("you said #{data}")
      def on_close(client) = Notes.add("closed #{client.env["PATH_INFO"]}")
    end
  RUBY
  APP = <<~'RUBY'
    env["rack.upgrade"] = Handler.new if env["rack.upgrade?"] && env["PATH_INFO"] != "/plain"
    [200, { "content-type" => "text/plain" }, ["plain"]]
  RUBY

  # A tunnel, and the frames of a client: masked with zeros.
  TUNNEL = <<~'JS'
    const tunnel = (path, fields = {}) => session.request(
      { ":method": "CONNECT", ":protocol": "websocket", ":path": path, "sec-websocket-version": "13", ...fields }, { endStream: false })
    const frame = (opcode, data) => Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | data.length, 0, 0, 0, 0]), Buffer.from(data)])
    const offered = new Promise(done => session.on("remoteSettings", settings => done(settings.enableConnectProtocol)))
  JS

  def test_a_web_socket_talks_beside_requests_and_closes
    server = serving
    seen = node(server, TUNNEL + <<~'JS')
      offered.then(offer => {
        const stream = tunnel("/chat"), heard = []
        let status
        stream.on("response", fields => status = fields[":status"])
        stream.on("data", data => {
          heard.push([data[0] & 15, data.subarray(2).toString("latin1")])
          if (heard.length === 1) ask("/plain").then(([, , body]) => { heard.push(["beside", body]); stream.write(frame(1, "hello")) })
          if (heard.length === 3) stream.write(frame(8, [3, 232]))
        })
        stream.on("end", () => { stream.end(); say([offer, status, heard]) })
      })
    JS

    assert_equal [true, 200, [[1, "open HTTP/2"], %w[beside plain], [1, "you said hello"], [8, "\u0003\u00e8"]]], seen
    assert_equal ["closed /chat"], wait_for_notes(server, 1)
  end

  def test_web_sockets_are_not_offered_if_that_is_set
    server = serve(unlinted(APP, setup: SETUP), "--no-http2-websockets")

    refute node(server, "#{TUNNEL}offered.then(say)")
  end

  # The end of the stream means the end of the client, like the end of a socket; so does a reset, and the connection's end.
  { "end" => "stream.end()", "reset" => "stream.close(http2.constants.NGHTTP2_CANCEL)", "lost" => "session.destroy()" }.each do |path, action|
    define_method(:"test_a_client_that_goes_by_#{path}_is_closed") do
      server = serving
      node(server, <<~JS)
        #{TUNNEL}
        offered.then(() => {
          const stream = tunnel("/#{path}")
          stream.on("error", () => {})
          stream.on("close", () => say([]))
          stream.once("data", () => { stream.resume(); #{action} })
        })
      JS

      assert_equal ["closed /#{path}"], wait_for_notes(server, 1)
    end
  end

  def test_success_that_is_no_web_socket_is_none
    seen = node(serving, "#{TUNNEL}offered.then(() => tunnel('/plain').on('response', fields => say(fields[':status'])))")

    assert_equal 501, seen
  end

  # As over HTTP/1, it is a request without an offer.
  def test_a_handshake_with_mistakes_opens_nothing
    seen = node(serving, <<~JS)
      #{TUNNEL}
      offered.then(() => tunnel("/", { "sec-websocket-version": "7" }).on("response", fields => say(fields[":status"])))
    JS

    assert_equal 501, seen
  end

  def test_an_event_stream_lasts_until_its_client_goes
    server = serving
    seen = node(server, <<~JS)
      const stream = session.request({ ":path": "/events", accept: "text/event-stream" })
      let text = ""
      const isWhole = () => text.includes("data: open")
      stream.on("data", data => !isWhole() && (text += data) && isWhole() && ask("/plain").then(() => {
        const isOpen = !stream.closed && !stream.readableEnded
        stream.close(http2.constants.NGHTTP2_CANCEL)
        stream.on("close", () => say([text.replace(/retry: \\d+\\n\\n/, ""), isOpen]))
      }))
    JS

    assert_equal ["data: open HTTP/2\n\n", true], seen
    assert_equal ["closed /events"], wait_for_notes(server, 1)
  end

  def test_a_client_whose_on_shutdown_hangs_gets_a_close_frame
    server = serve(unlinted(APP, setup: SETUP.sub("def on_close", "def on_shutdown(client) = sleep\n  def on_close")), "--shutdown-timeout", "1")
    seen = node_meanwhile(server, <<~JS) { wait_until("the tunnel") { File.exist?(server.path("open")) } && server.signal(:TERM) }
      #{TUNNEL}
      session.on("error", () => {})
      offered.then(() => {
        const stream = tunnel("/hangs")
        stream.on("error", () => {})
        stream.on("data", data => {
          if ((data[0] & 15) === 8) say([...data])
          require("fs").writeFileSync("#{server.path("open")}", "")
        })
        stream.on("close", () => say("nothing"))
      })
    JS

    assert_equal [0x88, 2, 3, 0xe9], seen
  end

  private

  def serving = serve(unlinted(APP, setup: SETUP))
end
