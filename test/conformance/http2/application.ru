# frozen_string_literal: true

# The application for the clients of clients_test.rb.

require "digest"
require "rack"
require "rack/lint"

# Three events, and the end.
class Events
  def on_open(client)
    3.times { |index| client.write((index + 1).to_s) }
    client.close
  end
end

# Sends the protocol of its connection, then echoes messages.
class Echo
  def on_open(client) = client.write(client.env["SERVER_PROTOCOL"])
  def on_message(client, data) = client.write(data)
end

PIECE = ("0123456789abcdef" * 4096).freeze
LARGE = PIECE * 80

# A response of many pieces.
class Pieces
  def each = 80.times { yield PIECE }
end

TEXT = { "content-type" => "text/plain" }.freeze

use Rack::Lint
run lambda { |env|
  env["rack.upgrade"] = Events.new if env["rack.upgrade?"] == :sse
  env["rack.upgrade"] = Echo.new if env["rack.upgrade?"] == :websocket
  case env["PATH_INFO"]
  when "/protocol" then [200, TEXT, [env["SERVER_PROTOCOL"]]]
  when "/digest" then [200, TEXT, [Digest::SHA256.hexdigest(env["rack.input"].read)]]
  when "/large" then [200, TEXT, [LARGE]]
  when "/pieces" then [200, TEXT, Pieces.new]
  when "/moved" then [302, TEXT.merge("location" => "/"), ["elsewhere"]]
  when "/missing" then [404, TEXT, ["nothing"]]
  when "/hinted"
    env["rack.early_hints"].call("link" => "</style.css>; rel=preload")
    [200, TEXT, ["hinted"]]
  when "/slow"
    sleep 0.01
    [200, TEXT, [env["QUERY_STRING"]]]
  when "/page" then [200, { "content-type" => "text/html" }, ["<!DOCTYPE html><title>page</title>"]]
  else [200, TEXT, ["hello"]]
  end
}
