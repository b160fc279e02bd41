# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/http_client"
require "support/rack_apps"

# Popular WebSocket clients, each a program in this folder. All take the same steps: text, bytes, a compressible message,
# fragments, a ping, a close by the server and one by the client. They print their results as JSON.
class ClientsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  APP = <<~'RUBY'
    class Echo
      def on_open(client)
        return unless client.env["PATH_INFO"] == "/greeting"

        client.write("welcome")
        client.close(1000)
      end

      def on_message(client, data)
        code, reason = data.match(/\Aclose (\d+) (.*)\z/)&.captures
        code ? client.close(Integer(code, 10), reason) : client.write(data)
      end

      def on_close(_client) = Notes.add("closed")
    end
  RUBY

  CALL = <<~'RUBY'
    offered = env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s.split(/\s*,\s*/)
    env["rack.upgrade"] = Echo.new if env["rack.upgrade?"]
    [200, { "content-type" => "text/plain" }.merge(offered.include?("echo.v1") ? { "sec-websocket-protocol" => "echo.v1" } : {}), []]
  RUBY

  # Debian's modules need Debian's Python, which may not be the first one on the PATH.
  PYTHON = "/usr/bin/python3"
  NODE_MODULES = { "NODE_PATH" => ["/usr/share/nodejs", *ENV["NODE_PATH"]].join(":") }.freeze

  SEEN = {
    "protocol" => "echo.v1", "compression" => true, "text" => true, "binary" => true, "large" => true, "fragments" => true,
    "pong" => true, "closed_by_server" => [4001, "goodbye"], "closed_by_client" => 4000
  }.freeze

  def test_websockets_of_python
    need("websockets", PYTHON, "-c", "import websockets")

    assert_equal SEEN, seen_by(PYTHON, "websockets_client.py")
  end

  def test_aiohttp_of_python_which_sends_no_fragments
    need("aiohttp", PYTHON, "-c", "import aiohttp")

    assert_equal SEEN.merge("fragments" => nil), seen_by(PYTHON, "aiohttp_client.py")
  end

  def test_ws_of_node
    need("ws", NODE_MODULES, "node", "-e", 'require("ws")')

    assert_equal SEEN, seen_by(NODE_MODULES, "node", "ws_client.js")
  end

  def test_websocket_driver_of_ruby_which_sends_no_fragments_and_compresses_nothing
    need("websocket-driver", RbConfig.ruby, "-e", 'require "websocket/driver"')

    assert_equal SEEN.merge("fragments" => nil, "compression" => nil), seen_by(RbConfig.ruby, "websocket_driver_client.rb")
  end

  def test_curl_reads_what_a_websocket_says
    version = need("curl", "curl", "--version")
    skip "this curl is built without WebSocket" unless version[/^Protocols:.*$/].to_s.split.include?("ws")
    server = serve(linted(CALL, setup: APP))
    output, status = Open3.capture2e("curl", "--silent", "--show-error", "--max-time", "20", "ws://127.0.0.1:#{server.port}/greeting")

    # The output includes the payload of the close frame.
    assert_equal "welcome".b + [1000].pack("n"), output.b, status.inspect
  end

  private

  # Skips the test unless this command can load the library +name+.
  def need(name, *command)
    output, status = Open3.capture2e(*command)
    skip "#{name} is not installed" unless status.success?
    output
  rescue Errno::ENOENT
    skip "#{command.grep(String).first} is not installed"
  end

  # Returns the output of the program in this folder; both of its connections must be closed in the end.
  def seen_by(*command, program)
    server = serve(linted(CALL, setup: APP))
    output, errors, status = Open3.capture3(*command, File.join(__dir__, program), "ws://127.0.0.1:#{server.port}/")

    assert_predicate status, :success?, errors
    assert_equal %w[closed closed], wait_for_notes(server, 2)
    JSON.parse(output)
  end
end
