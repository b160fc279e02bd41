# frozen_string_literal: true

# The application for the clients of clients_test.rb.

require "digest"
require "json"
require "rack"
require "rack/lint"

# Echoes messages.
class Echo
  def on_message(client, data) = client.write(data)
end

# Three events, and the end.
class Events
  def on_open(client)
    3.times { |index| client.write((index + 1).to_s) }
    client.close
  end
end

PIECE = ("0123456789abcdef" * 4096).freeze

# A response of many pieces.
class Pieces
  def initialize(count) = @count = count
  def each = @count.times { yield PIECE }
end

TEXT = { "content-type" => "text/plain" }.freeze

use Rack::Lint
run lambda { |env|
  env["rack.upgrade"] = Echo.new if env["rack.upgrade?"] == :websocket
  env["rack.upgrade"] = Events.new if env["rack.upgrade?"] == :sse
  case env["PATH_INFO"]
  when "/digest" then [200, TEXT, [Digest::SHA256.hexdigest(env["rack.input"].read)]]
  when "/large" then [200, TEXT, Pieces.new(128)]
  when "/version" then [200, TEXT, [env["SSL_PROTOCOL"].to_s]]
  when "/page" then [200, { "content-type" => "text/html" }, ["<!DOCTYPE html><title>page</title>"]]
  else [200, TEXT, ["hello"]]
  end
}
