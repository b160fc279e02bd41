# frozen_string_literal: true

require "test_helper"
require "digest"
require "json"
require "open3"
require "uri"
require "support/certificates"

# Popular clients, over HTTP/2 with TLS and, if they can, without (prior knowledge). Most are programs in clients/ with the
# same steps: GET, HEAD, bodies, a redirect, downloads, early hints, an event stream, and a hundred concurrent requests on
# one connection. They print their results as JSON.
class Http2ClientsTest < Minitest::Test
  include Fairlead::Test::Secured

  GO = { "GO111MODULE" => "off", "GOTOOLCHAIN" => "local", "GOFLAGS" => nil }.freeze
  HTTPX = File.join(ROOT, "bin/support/httpx")

  BODY = "0123456789abcdef" * 4 * 65_536
  POSTED = Digest::SHA256.hexdigest(BODY)
  LARGE = Digest::SHA256.hexdigest("0123456789abcdef" * 80 * 4096)

  SEEN = {
    "get" => "hello", "protocol" => "HTTP/2", "head" => [200, "text/plain", 0], "posted" => POSTED, "missing" => 404, "moved" => "hello",
    "large" => LARGE, "pieces" => LARGE, "events" => %w[1 2 3], "parallel" => 100
  }.freeze
  HINTED = { "hinted" => "hinted" }.freeze
  HINTS = { **HINTED, "hints" => ["</style.css>; rel=preload"] }.freeze
  EXPECTED = { "expected" => POSTED }.freeze
  CONTINUED = { **EXPECTED, "continued" => true }.freeze

  # One server for all tests, at two addresses.
  class << self
    include Fairlead::Test::Secured

    def server
      @server ||= begin
        files = { **certificate_files, "ca.pem" => Fairlead::Test::Authority.usual.pem, "body" => BODY }
        application = File.read(File.join(__dir__, "application.ru"))
        server = Fairlead::Test::ServerProcess.new(application, "-w", 2, "-t", 4, "--early-hints", "-b", ssl_address, files: files)
        File.chmod(0o600, server.path("key.pem"))
        Minitest.after_run { server.destroy }
        server.start
      end
    end
  end

  { "with_tls" => "https", "without_tls" => "http" }.each do |words, scheme|
    define_method(:"test_curl_#{words}") do
      need("curl", "--http2", "--version")
      fields = curl(scheme, "/hinted", "--dump-header", "-", "--output", File::NULL)
      events = curl(scheme, "/events", "-H", "accept: text/event-stream").scan(/^data: ?(.*)$/).flatten

      assert_equal SEEN.except("head", "parallel").merge("events" => events), seen_by_curl(scheme)
      assert_equal [%w[103 200], ["</style.css>; rel=preload"]], [fields.scan(%r{^HTTP/2 (\d+)}).flatten, fields.scan(/^link: (.*)\r$/).flatten]
      assert_match(%r{\AHTTP/2 200 .*^content-type: text/plain\r$}m, curl(scheme, "/", "--head"))
      assert_equal %w[100 200], statuses_after_waiting(scheme)
    end

    define_method(:"test_nghttp_#{words}") do
      need("nghttp", "--version")
      output = run_command("nghttp", "--verbose", url(scheme, "/hinted"), url(scheme, "/missing"))

      assert_equal %w[103 200 404], output.scan(/recv \(stream_id=\d+\) :status: (\d+)/).flatten.sort
      refute_match(/RST_STREAM|error_code=(?!NO_ERROR)/, output)
      assert_includes run_command("nghttp", "--data", server.path("body"), "--expect-continue", url(scheme, "/digest")), POSTED
      assert_equal LARGE, Digest::SHA256.hexdigest(run_command("nghttp", url(scheme, "/large")))
    end

    define_method(:"test_h2load_#{words}") do
      need("h2load", "--version")
      output = run_command("h2load", "-n", "2000", "-c", "4", "-m", "50", url(scheme))

      assert_match(/^requests: 2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout$/, output)
      assert_match(/^Application protocol: h2c?$/, output)
    end

    define_method(:"test_http2_of_node_#{words}") do
      need("node", "--version")

      assert_equal SEEN.merge(HINTS, CONTINUED), seen_by("node", "node_client.js", scheme)
    end

    define_method(:"test_httpx_of_python_#{words}") do
      need(HTTPX, "-c", "import h2")

      assert_equal SEEN.merge(HINTED), seen_by(HTTPX, "httpx_client.py", scheme)
    end
  end

  # curl 7.88 cannot reuse a connection that it has begun with prior knowledge, with any server.
  def test_curl_sends_many_requests_on_one_connection
    need("curl", "--http2", "--version")
    requests = ["--parallel", "--parallel-max", "100", "--output", "slow-#1", "-w", "%{http_version} %{num_connects}\n"]
    seen = curl("https", "/slow?[0-99]", *requests).lines.map(&:split)

    assert_equal((0..99).map(&:to_s), (0..99).map { |number| File.read(server.path("slow-#{number}")) })
    assert_equal [["2"], 1], [seen.map(&:first).uniq, seen.sum { |_, connects| connects.to_i }]
  end

  def test_net_http_of_go
    need(GO, "go", "version")

    assert_equal SEEN.merge(HINTS, CONTINUED), seen_by(GO, "go", "run", "client.go", "https")
  end

  def test_http_client_of_java
    need("java", "--version")

    assert_equal SEEN.merge(EXPECTED), seen_by("java", "-XX:TieredStopAtLevel=1", "Client.java", "https")
  end

  # RFC 9113 §3.1 has removed this upgrade: the response is HTTP/1.1.
  def test_an_upgrade_to_http2_is_not_offered
    need("curl", "--http2", "--version")

    assert_equal "HTTP/1.1 1.1", run_command("curl", "--silent", "--http2", "-w", " %{http_version}", url("http", "/protocol"))
  end

  private

  def server = self.class.server

  # A host name, so that clients with TLS send it as SNI.
  def url(scheme, path = "/")
    address = server.addresses.find { |one| one.start_with?("#{scheme}://") }
    "#{address.sub("127.0.0.1", scheme == "https" ? "localhost" : "127.0.0.1")}#{path}"
  end

  def seen_by_curl(scheme)
    {
      "get" => curl(scheme, "/"), "protocol" => curl(scheme, "/protocol"), "posted" => curl(scheme, "/digest", "--data-binary", "@body"),
      "missing" => Integer(curl(scheme, "/missing", "--output", File::NULL, "-w", "%{http_code}"), 10),
      "moved" => curl(scheme, URI(curl(scheme, "/moved", "--output", File::NULL, "-w", "%{redirect_url}")).path),
      "large" => Digest::SHA256.hexdigest(curl(scheme, "/large")), "pieces" => Digest::SHA256.hexdigest(curl(scheme, "/pieces")),
      "events" => %w[1 2 3]
    }
  end

  def statuses_after_waiting(scheme)
    asking = ["--data-binary", "@body", "-H", "expect: 100-continue", "--expect100-timeout", "30"]
    curl(scheme, "/digest", *asking, "--dump-header", "-", "--output", File::NULL).scan(%r{^HTTP/2 (\d+)}).flatten
  end

  def curl(scheme, path, *options)
    secured = scheme == "https" ? ["--http2", "--cacert", "ca.pem"] : ["--http2-prior-knowledge"]
    run_command("curl", "--silent", "--show-error", "--max-time", "60", *secured, *options, url(scheme, path))
  end

  # Returns the output of a command, which may read the server's files.
  def run_command(*command)
    output, errors, status = Open3.capture3("timeout", "60", *command, chdir: server.directory)
    assert_predicate status, :success?, "#{errors}#{output[-2000..]}"
    output
  end

  # Skips the test unless the command succeeds.
  def need(*command)
    output, status = Open3.capture2e(*command)
    skip "#{command.grep(String).first}: #{output[-200..] || output}" unless status.success?
  rescue Errno::ENOENT
    skip "#{command.grep(String).first} is not installed"
  end

  # Returns the output of the program in clients/.
  def seen_by(*command, program, scheme)
    arguments = [File.join(__dir__, "clients", program), url(scheme, ""), server.path("ca.pem")]
    output, errors, status = Open3.capture3(*command, *arguments)
    assert_predicate status, :success?, errors
    JSON.parse(output)
  end
end
