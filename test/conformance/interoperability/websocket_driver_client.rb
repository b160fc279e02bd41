# frozen_string_literal: true

# Ruby's websocket-driver. Prints its results as a line of JSON; see clients_test.rb. It supports neither compression nor
# fragments.

require "json"
require "socket"
require "timeout"
require "uri"
require "websocket/driver"

# The driver with a socket.
class Client
  attr_reader :url, :driver, :closed

  def initialize(url, protocols = [])
    @url = url
    uri = URI(url)
    @socket = TCPSocket.new(uri.host, uri.port)
    @messages = []
    @driver = WebSocket::Driver.client(self, protocols: protocols)
    @driver.on(:message) { |event| @messages << event.data }
    @driver.on(:close) { |event| @closed = [event.code, event.reason] }
    @driver.start
    read until @driver.state == :open
  end

  def write(bytes) = @socket.write(bytes)

  # Returns the echo of a String or, as bytes, of an Array.
  def echo(message)
    message.is_a?(String) ? @driver.text(message) : @driver.binary(message)
    read while @messages.empty?
    @messages.shift
  end

  def ping(data)
    answered = false
    @driver.ping(data) { answered = true }
    read until answered
    answered
  end

  def wait_for_close
    read until @closed
    @closed
  end

  private

  def read = @driver.parse(@socket.readpartial(1 << 16))
end

TEXT = "grüße ✓"
BINARY = (0..255).to_a.freeze
LARGE = "0123456789abcdef" * 16_384

Timeout.timeout(30) do
  client = Client.new(ARGV.first, %w[other echo.v1])
  seen = {
    protocol: client.driver.protocol, compression: nil, fragments: nil, text: client.echo(TEXT) == TEXT,
    binary: client.echo(BINARY).to_a == BINARY, large: client.echo(LARGE) == LARGE, pong: client.ping("there?")
  }
  client.driver.text("close 4001 goodbye")
  seen[:closed_by_server] = client.wait_for_close
  client = Client.new(ARGV.first)
  client.driver.close("enough", 4000)
  seen[:closed_by_client] = client.wait_for_close.first
  puts JSON.generate(seen)
end
