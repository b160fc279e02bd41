# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/http2_commands"
require "support/rack_apps"

# Tunnels (extended CONNECT, RFC 8441) that the application takes over: by `rack.hijack`, like Action Cable, or by
# `rack.protocol` of Rack 3.1, like async-websocket. It gets an IO that is connected with the stream.
class Http2TunnelsTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::RackApps

  # Echoes everything until the client closes its direction.
  SETUP = <<~'RUBY'
    module Echo
      HEAD = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Mine: 1\r\n\r\n"

      def self.call(stream)
        while (data = stream.readpartial(65_536))
          stream.write(data)
        end
      rescue EOFError
        stream.write("bye")
      rescue SystemCallError => error
        Notes.add(error.class.name)
      ensure
        Notes.add("ended")
        stream.close
      end

      def self.later(stream) = Thread.new { call(stream) }

      def self.taken(env)
        socket = env["rack.hijack"].call
        socket.write(HEAD)
        later(socket)
        [-1, {}, []]
      end
    end
  RUBY

  # Forms of the response.
  FORMS = {
    "full_hijack" => "Echo.taken(env)",
    "partial_hijack" => "[101, { 'upgrade' => 'websocket', 'x-mine' => '1', 'rack.hijack' => Echo.method(:later) }, []]",
    "protocol_with_success" => "[200, { 'rack.protocol' => 'websocket', 'x-mine' => '1' }, Echo.method(:call)]",
    "protocol_with_101" => "[101, { 'rack.protocol' => 'websocket', 'x-mine' => '1' }, Echo.method(:later)]",
    "protocol_and_hijack" => "[200, { 'rack.protocol' => 'websocket', 'x-mine' => '1', 'rack.hijack' => Echo.method(:later) }, []]"
  }.freeze

  TUNNEL = <<~'JS'
    const tunnel = (path, fields = {}) => session.request(
      { ":method": "CONNECT", ":protocol": "websocket", ":path": path, "sec-websocket-version": "13", ...fields }, { endStream: false })
    const offered = new Promise(done => session.on("remoteSettings", settings => done(settings.enableConnectProtocol)))
    const received = stream => new Promise((done, failed) => {
      const pieces = []
      stream.on("data", piece => pieces.push(piece))
      stream.on("end", () => done(Buffer.concat(pieces)))
      stream.on("error", failed)
    })
  JS

  FORMS.each do |name, form|
    define_method(:"test_#{name}_talks_in_both_directions_beside_requests") do
      server = echoing(form)
      seen = node(server, TUNNEL + <<~'JS')
        offered.then(async () => {
          const stream = tunnel("/echo"), all = received(stream)
          const head = await new Promise(done => stream.on("response", done))
          stream.write("hello, ")
          const beside = (await ask("/plain"))[2]
          stream.end("stream; ")
          say([head[":status"], head["x-mine"], head.upgrade, beside, (await all).toString()])
        })
      JS

      assert_equal [200, "1", nil, "plain", "hello, stream; bye"], seen
      assert_equal ["ended"], wait_for_notes(server, 1)
    end

    # Far more than all windows and buffers hold.
    define_method(:"test_#{name}_carries_much_and_waits_for_whoever_is_slow") do
      server = echoing(form)
      seen = node(server, TUNNEL + <<~'JS')
        offered.then(async () => {
          const sent = require("crypto").randomBytes(8 << 20)
          const stream = tunnel("/echo")
          stream.end(sent)
          await new Promise(done => stream.on("response", done))
          await ask("/plain")
          const back = await received(stream)
          say([back.length, back.subarray(0, sent.length).equals(sent)])
        })
      JS

      assert_equal [(8 << 20) + 3, true], seen
    end
  end

  # A request without a tunnel has nothing to take over, and no protocol to choose.
  def test_what_the_env_says
    server = echoing(FORMS["full_hijack"])
    seen = node(server, TUNNEL + <<~'JS')
      offered.then(async () => {
        const head = await new Promise(done => tunnel("/env").on("response", done))
        say([(await ask("/env"))[2], head["x-env"]])
      })
    JS

    assert_equal ['[false, nil, nil, "GET"]', '[true, ["websocket"], "Fairlead::Native::Hijack", "GET"]'], seen
  end

  def test_a_protocol_that_is_not_offered_is_an_error
    server = echoing("[200, { 'rack.protocol' => 'chat' }, Echo.method(:call)]")

    assert_equal 500, node(server, "#{TUNNEL}offered.then(() => tunnel('/echo').on('response', fields => say(fields[':status'])))")
    server.wait_for_output(/the client does not offer rack\.protocol of the header/)
  end

  def test_a_client_that_refuses_further_bytes_ends_it
    server = echoing(FORMS["full_hijack"])
    node(server, TUNNEL + <<~'JS')
      offered.then(() => {
        const stream = tunnel("/echo")
        stream.on("error", () => {})
        stream.on("close", () => ask("/plain").then(say))
        stream.once("data", () => stream.close(http2.constants.NGHTTP2_CANCEL))
        stream.write("x")
      })
    JS

    assert_equal "ended", wait_for_notes(server, 1).last
  end

  # The application may not know that its server ends, and its clients may not close.
  def test_they_keep_no_server_from_ending
    server = echoing(FORMS["full_hijack"], "-w", 2, "--shutdown-timeout", 600)
    closed = node_meanwhile(server, TUNNEL + <<~'JS') do
      offered.then(() => {
        const stream = tunnel("/echo")
        session.on("close", () => say("closed"))
        stream.on("error", () => {})
        stream.once("data", () => ask("/ready"))
        stream.write("x")
      })
    JS
      assert_equal ["ready"], wait_for_notes(server, 1)
      server.stop
    end

    assert_equal "closed", closed
  end

  private

  def echoing(form, *options)
    serve(unlinted(<<~RUBY, setup: SETUP), *options)
      seen = env.values_at("rack.hijack?", "rack.protocol") + [env["rack.hijack"]&.class&.name, env["REQUEST_METHOD"]]
      case env["PATH_INFO"]
      when "/plain" then [200, {}, ["plain"]]
      when "/ready" then Notes.add("ready").then { [200, {}, []] }
      when "/env" then env["rack.protocol"] ? [404, { "x-env" => seen.inspect }, []] : [200, {}, [seen.inspect]]
      else #{form}
      end
    RUBY
  end
end
