# frozen_string_literal: true

require "test_helper"
require "json"
require "socket"
require_relative "../../../bench/harness"
require_relative "../../../bench/harness/cell"
require_relative "../../../bench/harness/report"
require_relative "../../../bench/harness/result"

# Scenarios with TLS (bench/harness/tls.rb): the selected servers, the arguments of the load tool, and the compared
# measurements.
class BenchTlsTest < Minitest::Test
  AGREED = { "version" => "TLSv1.3", "cipher" => "TLS_AES_256_GCM_SHA384", "connections" => 10 }.freeze

  # Records its calls; resumes that many sessions of a hundred.
  class Tool
    attr_reader :asked
    attr_accessor :resumed, :agreed

    def initialize
      @asked = []
      @resumed = 0
      @agreed = [AGREED]
    end

    def measure(url, **how)
      @asked << [url, how]
      latencies = { "full" => { "p99" => 9.0 }, "resumed" => { "p99" => 4.0 } }
      found = { "handshakes" => 100, "full" => 100 - resumed, "resumed" => resumed, "agreed" => agreed, "latency_ms" => latencies }
      Bench::Measurement.new(rate: 50.0, requests: 100, seconds: 2.0, errors: {}, latency: { 99.0 => 20.0 }, bytes: 99_999, tls: found)
    end
  end

  Running = Struct.new(:url_of, :tls) do
    def url(path) = "#{url_of}#{path}"
  end

  def setup
    @tool = Tool.new
  end

  def test_certificates_are_of_their_kind_and_made_once
    { "ECDSA P-256" => OpenSSL::PKey::EC, "RSA 2048" => OpenSSL::PKey::RSA }.each do |kind, type|
      pair = Bench::Certificates.pair(kind)
      certificate = OpenSSL::X509::Certificate.new(File.read(pair.certificate))

      assert_instance_of type, certificate.public_key
      assert certificate.check_private_key(OpenSSL::PKey.read(File.read(pair.key)))
      assert_equal 0o600, File.stat(pair.key).mode & 0o777
      assert_same pair, Bench::Certificates.pair(kind)
    end
  end

  def test_servers_with_tls_are_asked_and_ours_without_it_beside_them
    scenario = Bench::Scenario.named("tls")
    shape = Bench::Shape.parse("1x1")
    asked = Bench::Server.all.select { |server| scenario.asks?(server, shape) }.map(&:name)

    assert_equal %w[fairlead fairlead-plain puma thin nginx], asked
    assert_equal %w[unicorn], scenario.without_tls(%w[fairlead-plain puma unicorn nginx native].map { |name| Bench::Server.named(name) }).map(&:name)
    refute Bench::Scenario.named("short").asks?(Bench::Server.named("fairlead-plain"), shape)
  end

  def test_a_server_gets_the_certificate_that_the_shape_names_and_one_without_tls_gets_none
    scenario = Bench::Scenario.named("tls-handshake")
    commands = { "ECDSA P-256" => "ecdsa-p-256.pem", "RSA 2048" => "rsa-2048.pem" }.map do |kind, file|
      shape = Bench::Shape.parse("1x5 #{kind}")
      puma = Bench::Server.named("puma")
      Bench::Site.open(scenario, puma, shape) { |site| [puma.send(:address, site, 1), file] }
    end

    commands.each { |address, file| assert_match(%r{\Assl://127.0.0.1:1\?cert=\S+/#{Regexp.escape(file)}&key=}, address) }
    plain = Bench::Server.named("fairlead-plain")
    Bench::Site.open(Bench::Scenario.named("tls"), plain, Bench::Shape.parse("1x1")) { |site| assert_nil site.tls }
  end

  def test_the_tool_is_told_what_to_speak_only_where_tls_is_spoken
    drive = Bench::Drive::SecureRequests.new(answer_bytes: 1)
    drive.measure(target("https://there", tls), 2.0)
    drive.measure(target("http://there", nil), 2.0)

    assert_equal [tls, nil], @tool.asked.map { |_, how| how[:tls] }
    assert_equal %w[--insecure --tls-version 1.3 --no-resume], tls.arguments
    assert_equal "--resume", tls(resume: true).arguments.last
  end

  def test_another_version_or_cipher_does_not_count
    @tool.agreed = [AGREED, { "version" => "TLSv1.2", "cipher" => "X", "connections" => 1 }]
    [Bench::Drive::SecureRequests, Bench::Drive::Handshakes].each do |drive|
      error = assert_raises(Bench::Error) { drive.new(answer_bytes: 1).measure(target("https://there", tls), 2.0) }
      assert_equal "agreed on TLSv1.2 X", error.message
    end
  end

  def test_handshakes_are_those_that_were_asked_for
    drive = Bench::Drive::Handshakes.new(answer_bytes: 1)

    assert_equal({ 99.0 => 9.0 }, drive.measure(target("https://there", tls), 2.0).latency)
    refute @tool.asked.last.last[:keep_alive]
    assert_equal "0 % of the sessions were resumed", assert_raises(Bench::Error) { resume(drive) }.message
    @tool.resumed = 99
    assert_equal({ 99.0 => 4.0 }, resume(drive).latency)
    assert_equal "99 % of the sessions were resumed", assert_raises(Bench::Error) { drive.measure(target("https://there", tls), 2.0) }.message
  end

  def test_the_table_compares_with_ourselves_without_tls
    cells = { "fairlead" => 60.0, "fairlead-plain" => 100.0 }.map do |server, rate|
      found = @tool.measure("").tap { |measurement| measurement.round = 0 }
      found.rate = rate
      found.socket_kib = 12.0
      Bench::Cell.new(shape: Bench::Shape.parse("1x1"), server: server, version: "1", measurements: [found], failures: [])
    end
    copies = JSON.parse(JSON.generate(cells.map(&:as_json))).map { |hash| Bench::Cell.from_json(hash) }
    scenario = Bench::Scenario.new("s", about: "", shapes: [], app: "", metrics: %i[rate vs_plain idle_connection])

    row = Bench::Report.new(Bench::Result.new(scenario, {}, copies), []).to_markdown.lines.grep(/^\| fairlead 1/).first
    assert_equal ["60", "0.60", "12"], row.split("|").map(&:strip).values_at(2, 3, 4)
  end

  # One server keeps its connections, one closes them.
  def test_idle_connections_have_to_stay
    skip "no /proc" unless Bench::ProcessGroup.readable?

    assert_kind_of Float, kib_of_idle(closes: false)
    error = assert_raises(Bench::Error) { kib_of_idle(closes: true) }
    assert_equal "idle connections were closed", error.message
  end

  private

  def kib_of_idle(closes:)
    server = TCPServer.new("127.0.0.1", 0)
    kept = []
    thread = Thread.new { loop { serve_one(server.accept, kept, closes) } }
    running = Struct.new(:port, :tls, :group).new(server.local_address.ip_port, nil, Bench::ProcessGroup.new(Process.getpgrp))
    Bench::IdleConnections.kib(running, number: 5, settling: 0)
  ensure
    thread&.kill
    [server, *kept].each(&:close)
  end

  def serve_one(socket, kept, closes)
    kept << socket
    nil until socket.gets == "\r\n"
    # The end of the connection arrives together with the response.
    socket.setsockopt(:TCP, :CORK, 1)
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    closes ? socket.shutdown(:WR) : socket.setsockopt(:TCP, :CORK, 0)
  end

  def resume(drive)
    drive.measure(target("https://there", tls(resume: true)), 2.0)
  end

  def tls(resume: nil)
    Bench::Tls.new(certificate: "ECDSA P-256", resume: resume)
  end

  def target(url, tls)
    Bench::Drive::Target.new(@tool, Running.new(url, tls), Bench::Shape.parse("1x1"), nil, "/")
  end
end
