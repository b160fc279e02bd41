# frozen_string_literal: true

require "test_helper"
require "open3"
require "json"
require "support/certificates"

# `fairlead bench` against a Fairlead server with TLS.
class BenchTlsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  Authority = Fairlead::Test::Authority

  # Echoes over WebSockets, and responds to other requests.
  APP = <<~RUBY
    class Echo
      def on_message(client, message) = client.write(message)
    end
    run(lambda do |env|
      next [200, {}, [env["rack.url_scheme"]]] unless env["rack.upgrade?"] == :websocket

      env["rack.upgrade"] = Echo.new
      [101, {}, []]
    end)
  RUBY

  def test_handshakes_are_counted_and_sessions_resumed
    server = serve_tls(APP)
    { [] => [3, 0], %w[--no-keep-alive] => [12, 0], %w[--no-keep-alive --resume] => [3, 9] }.each do |options, kinds|
      report = bench(server, "https", "-n", 12, "-c", 3, *options)

      assert_equal [12, *kinds], [report["requests"]["answered"], *report["tls"].values_at("full", "resumed")], report
    end
  end

  def test_websockets_speak_over_tls
    server = serve_tls(APP)
    report = bench(server, "wss", "-n", 40, "-c", 4, "--size", 20_000)

    assert_equal [40, 4], [report["requests"]["answered"], report["sockets"]["left"]], report
  end

  def test_a_client_shows_its_certificate_and_one_without_is_told_what_is_missing
    client = Authority.usual.client
    files = { "client.pem" => client.pem, "client.key" => client.key_pem }
    server = serve_tls(APP, files: files, query: { verify_mode: "force_peer", ca: "ca.pem" })
    report = bench(server, "https", "-n", 6, "--cert", "client.pem", "--key", "client.key")

    assert_equal 6, report["requests"]["answered"]
    report = bench(server, "https", "-n", 6, status: 2)
    assert_equal({ "the server sent the alert CertificateRequired" => 6 }, report["tls"]["reasons"])
  end

  def test_a_certificate_that_signs_itself_is_refused_in_words
    server = serve_tls(APP, pair: Authority.usual.itself)
    _, errors, status = run_tool(server, "https", "-n", 2, "--cacert", "cert.pem")

    assert_match(/the certificate signs itself, as only an authority does \(--insecure takes it; /, errors)
    assert_predicate status, :exited?
    assert_equal 2, bench(server, "https", "-n", 2, "--insecure")["requests"]["answered"]
  end

  private

  # Returns the document of a run against +server+.
  def bench(server, scheme, *arguments, status: 0)
    output, errors, ended = run_tool(server, scheme, "--json", *arguments)

    assert_equal status, ended.exitstatus, errors + output
    JSON.parse(output)
  end

  # Returns [standard output, standard error, status].
  def run_tool(server, scheme, *arguments)
    tool = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/fairlead", "bench"]
    trust = %w[--cacert ca.pem] unless arguments.intersect?(%w[--insecure --cacert])
    Open3.capture3(*tool, "#{scheme}://127.0.0.1:#{server.port}/", *trust, *arguments.map(&:to_s), chdir: server.directory)
  end
end
