# frozen_string_literal: true

require "test_helper"
require "digest"
require "json"
require "open3"
require "support/certificates"

# Popular clients over TLS, each a program in clients/. All take the same steps: a request, a request with a large body, a
# download, a WebSocket, an event stream, and a second connection that offers the session of the first one. They print their
# results as JSON.
class TlsClientsTest < Minitest::Test
  include Fairlead::Test::Secured

  # Debian's modules need Debian's Python, which may not be the first one on the PATH.
  PYTHON = "/usr/bin/python3"
  NODE_MODULES = { "NODE_PATH" => ["/usr/share/nodejs", *ENV["NODE_PATH"]].join(":") }.freeze
  GO = { "GO111MODULE" => "off", "GOTOOLCHAIN" => "local", "GOFLAGS" => nil }.freeze

  PIECE = "0123456789abcdef"
  SEEN = {
    "get" => "hello", "version" => "TLSv1.3", "posted" => Digest::SHA256.hexdigest(PIECE * 65_536),
    "downloaded" => Digest::SHA256.hexdigest(PIECE * 524_288), "events" => %w[1 2 3], "echo" => true, "resumed" => true
  }.freeze

  # One server for all tests.
  class << self
    include Fairlead::Test::Secured

    def server
      @server ||= begin
        files = { **certificate_files, "ca.pem" => Fairlead::Test::Authority.usual.pem }
        server = Fairlead::Test::ServerProcess.new(File.read(File.join(__dir__, "application.ru")), "-w", 2, files: files, bind: ssl_address)
        File.chmod(0o600, server.path("key.pem"))
        Minitest.after_run { server.destroy }
        server.start
      end
    end
  end

  def test_curl
    need("curl", "curl", "--version")
    pattern = PIECE * 65_536
    seen = {
      "get" => curl("/"), "version" => curl("/version"), "posted" => curl("/digest", "--data-binary", "@-", stdin: pattern),
      "downloaded" => Digest::SHA256.hexdigest(curl("/large")),
      "events" => curl("/events", "-H", "accept: text/event-stream").scan(/^data: ?(.*)$/).flatten
    }
    twice = curl("/", url("/"), "--http1.1", "--verbose", "-H", "connection: close", "--stderr", "-")

    assert_equal SEEN.except("echo", "resumed"), seen
    assert_match(/re-?using session ID/i, twice)
  end

  def test_net_http_of_ruby
    need("websocket-driver", RbConfig.ruby, "-e", 'require "websocket/driver"')

    assert_equal SEEN, seen_by(RbConfig.ruby, "net_http.rb")
  end

  def test_urllib_and_websockets_of_python
    need("websockets", PYTHON, "-c", "import websockets")

    assert_equal SEEN, seen_by(PYTHON, "urllib_client.py")
  end

  def test_https_and_ws_of_node
    need("ws", NODE_MODULES, "node", "-e", 'require("ws")')

    assert_equal SEEN, seen_by(NODE_MODULES, "node", "node_client.js")
  end

  def test_net_http_of_go
    need("go", "go", "version")

    assert_equal SEEN, seen_by(GO, "go", "run", "client.go")
  end

  def test_http_client_of_java
    need("java", "java", "--version")

    assert_equal SEEN, seen_by("java", "-XX:TieredStopAtLevel=1", "Client.java")
  end

  private

  def server = self.class.server

  # A host name, so that clients send it as SNI.
  def url(path = "") = "https://localhost:#{server.port}#{path}"

  def curl(path, *options, stdin: "")
    output, errors, status = Open3.capture3("curl", "--silent", "--show-error", "--max-time", "60", "--cacert", server.path("ca.pem"), *options,
                                            url(path), stdin_data: stdin)
    assert_predicate status, :success?, errors
    output
  end

  # Skips the test unless this command can load the library +name+.
  def need(name, *command)
    _, status = Open3.capture2e(*command)
    skip "#{name} is not installed" unless status.success?
  rescue Errno::ENOENT
    skip "#{command.grep(String).first} is not installed"
  end

  # Returns the output of the program in clients/.
  def seen_by(*command, program)
    output, errors, status = Open3.capture3(*command, File.join(__dir__, "clients", program), url, server.path("ca.pem"))
    assert_predicate status, :success?, errors
    JSON.parse(output)
  end
end
