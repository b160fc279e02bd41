# frozen_string_literal: true

require "test_helper"
require "support/board_file"
require "support/http_client"
require "support/http2_commands"

# Records about HTTP/2: the access log, the statistics, and the log of misbehaving clients.
class Http2FiguresTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::HttpClients

  APP = "run ->(_env) { [200, {}, ['ok']] }"
  PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0".b

  def test_the_access_log_names_the_version_and_each_request
    server = serve(APP, "--access-log", "access.log")
    nghttp(server, "/a", "/b")
    curl(server, "/c", "--head")
    lines = wait_until("three lines") { File.readlines(server.path("access.log")).then { |all| all if all.size == 3 } }

    assert_equal ['"GET /a HTTP/2.0" 200 2', '"GET /b HTTP/2.0" 200 2', '"HEAD /c HTTP/2.0" 200 0'],
                 lines.map { |line| line[/"[A-Z]+ [^"]*" \d+ \S+/].sub("-", "0") }.sort
  end

  # An application that responds with success to a WebSocket without accepting it, and an unknown protocol.
  def test_the_access_log_has_the_status_that_the_client_of_a_tunnel_gets
    server = serve(APP, "--access-log", "access.log")
    statuses = node(server, <<~'JS')
      const status = protocol => new Promise(done =>
        session.request({ ":method": "CONNECT", ":protocol": protocol, ":path": "/" }, { endStream: false })
          .on("response", fields => done(fields[":status"])).on("error", () => {}))
      session.on("remoteSettings", async () => say([await status("websocket"), await status("anything")]))
    JS
    lines = wait_until("two lines") { File.readlines(server.path("access.log")).then { |all| all if all.size == 2 } }

    assert_equal [501, 501], statuses
    assert_equal ['"GET / HTTP/2.0" 501', '"- - -" 501'], lines.map { |line| line[/"[^"]*" \d+/] }
  end

  def test_connections_and_requests_are_counted
    server = serve(APP, "-w", 1, "-C", "board.rb", files: { "board.rb" => Fairlead::Test::BoardFile::SCRIPT })
    nghttp(server, "/a", "/b", "/c")
    get(server)
    counts = wait_until("four requests") { counters(server).then { |worker| worker if worker["requests"] == 4 } }

    assert_equal [1, 3], counts.values_at("http2_connections", "http2_requests")
    wait_until("the end of the connections") { counters(server)["connections"].zero? }
  end

  # DATA on stream 0 (RFC 9113 §6.1), and an excessive number of PINGs (§10.5).
  { "violations" => [[0, 0, 1, 0, 0, 0, 0, 0, 0, 65].pack("C*"), /\(PROTOCOL_ERROR\)/],
    "ping_floods" => [[0, 0, 8, 6, 0, 0, 0, 0, 0, *Array.new(8, 0)].pack("C*") * 20_000, /\(ENHANCE_YOUR_CALM\)/] }.each do |name, (bytes, line)|
    define_method(:"test_#{name}_are_counted_and_logged") do
      server = serve(APP, "-w", 1, "-C", "board.rb", files: { "board.rb" => Fairlead::Test::BoardFile::SCRIPT })
      client = connect(server)
      begin
        client.write(PREFACE + bytes)
      rescue SystemCallError
        nil # the connection ended before all was sent
      end
      wait_until("the count of #{name}") { counters(server)["http2_#{name}"] == 1 }

      assert_logged(/closed HTTP\/2 connection from 127\.0\.0\.1:\d+: .*#{line}/, server)
      assert_equal "ok", get(server).body
    end
  end

  # A client that stops in the middle of a frame.
  def test_slow_clients_are_counted_and_logged
    server = serve(APP, "-w", 1, "--head-timeout", "1", "-C", "board.rb", files: { "board.rb" => Fairlead::Test::BoardFile::SCRIPT })
    connect(server).write(PREFACE + [0, 0, 8, 6].pack("C*"))
    wait_until("the count") { counters(server)["http2_slow"] == 1 }

    assert_logged(/closed HTTP\/2 connection from .*takes or sends too little \(ENHANCE_YOUR_CALM\)/, server)
  end

  private

  def counters(server) = Fairlead::Test::BoardFile.new(server)["workers"].first
end
