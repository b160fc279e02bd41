# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/certificates"
require "support/restarts"

# Connections over TLS that go on in another process: after every kind of end, with both versions and key updates.
class TlsMovingTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured
  include Fairlead::Test::Restarts

  Authority = Fairlead::Test::Authority
  # Responds with its process, and the session.
  APP = <<~'RUBY'
    require "json"
    run ->(env) { [200, {}, [JSON.generate(env.select { |name, _| name.start_with?("SSL_") }.merge("pid" => Process.pid)) + "\n"]] }
  RUBY
  RESTARTS = { USR1: "phased restart", USR2: "hot restart", URG: "refork" }.freeze

  def setup
    super
    linux_only("sealed memory files, in which keys are sent")
  end

  def test_idle_connections_go_on_with_what_the_handshake_has_shown
    server = serve_tls(APP, "-w", 2, query: { verify_mode: "peer", ca: "ca.pem" })
    clients = %w[1.2 1.3].product([nil, Authority.usual.client]).flat_map do |version, pair|
      Array.new(2) { tls_socket(server.port, version: version, pair: pair) }
    end
    before = clients.map { |client| ask(client) }

    assert_equal({ "NONE" => 4, "SUCCESS" => 4 }, before.map { |env| env["SSL_CLIENT_VERIFY"] }.tally)
    RESTARTS.each do |signal, name|
      workers = server.worker_pids
      server.signal(signal)
      restarted(server, name)
      after = clients.map { |client| ask(client) }

      assert_empty after.map { |env| env["pid"] } & (workers - server.worker_pids)
      assert_equal before.map { |env| env.except("pid") }, after.map { |env| env.except("pid") }
    end
    assert_empty server.stderr
  end

  def test_half_a_request_goes_with_its_connection
    server = serve_tls(APP, "-w", 2)
    clients = %w[1.2 1.3].map { |version| tls_socket(server.port, version: version) }
    clients.each { |client| client.write("GET / HTTP/1.1\r\nhost: a\r\nx-half: ") }
    server.signal(:USR1)
    restarted(server)

    clients.each do |client|
      client.write("other\r\n\r\n")

      assert_includes server.worker_pids, answer_of(client)["pid"]
    end
  end

  def test_keys_are_updated_before_and_after_a_move
    server = serve_tls(APP, "-w", 2)
    Open3.popen2e("openssl", "s_client", "-connect", "127.0.0.1:#{server.port}", "-tls1_3", "-crlf") do |input, output, client|
      2.times do |moves|
        # Asks the server for new keys, too.
        input.write("K\n")
        output.each_line.find { |line| line.include?("KEYUPDATE") }
        input.write("GET / HTTP/1.1\nhost: a\n\n")

        assert_includes server.worker_pids, JSON.parse(output.each_line.find { |line| line.start_with?("{") })["pid"]
        next unless moves.zero?

        server.signal(:USR1)
        restarted(server)
      end
      Process.kill(:KILL, client.pid)
    end
  end

  def test_a_client_that_breaks_the_protocol_after_a_move_gets_the_alert
    server = serve_tls(APP, "-w", 2)
    clients = %w[1.2 1.3].map { |version| tls_socket(server.port, version: version) }
    clients.each { |client| ask(client) }
    server.signal(:USR1)
    restarted(server)

    clients.each do |client|
      client.to_io.write([23, 3, 3, 0, 40, *[1] * 40].pack("C*"))
      assert_match(/bad record mac/, assert_raises(OpenSSL::SSL::SSLError) { client.read }.message)
    end
  end

  private

  def ask(client)
    client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    answer_of(client)
  end

  def answer_of(client)
    head = +""
    head << client.readpartial(1) until head.end_with?("\r\n\r\n")

    refute_match(/^connection:/i, head)
    JSON.parse(client.read(Integer(head[/^content-length: (\d+)/i, 1], 10)))
  end
end
