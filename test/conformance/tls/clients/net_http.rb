# frozen_string_literal: true

# Ruby's Net::HTTP, and websocket-driver on OpenSSL's sockets. Prints its results as a line of JSON; see ../clients_test.rb.

require "digest"
require "json"
require "net/http"
require "openssl"
require "timeout"
require "uri"
require "websocket/driver"

PIECE = "0123456789abcdef" * 65_536

# The driver with a socket.
class Client
  attr_reader :url

  def initialize(uri, authority)
    @url = "wss://#{uri.host}:#{uri.port}/echo"
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(ca_file: authority)
    @socket = OpenSSL::SSL::SSLSocket.open(uri.host, uri.port, context: context)
    @socket.hostname = uri.host
    @socket.connect
    @driver = WebSocket::Driver.client(self)
    @driver.on(:message) { |event| @message = event.data }
    @driver.start
    read until @driver.state == :open
  end

  def write(bytes) = @socket.write(bytes)

  def echo(message)
    @driver.text(message)
    read until @message
    @message
  end

  private

  def read = @driver.parse(@socket.readpartial(1 << 16))
end

def download(http)
  digest = Digest::SHA256.new
  http.request_get("/large") { |response| response.read_body { |piece| digest << piece } }
  digest.hexdigest
end

def events(http)
  http.request_get("/events", "accept" => "text/event-stream") { |response| return response.read_body.scan(/^data: ?(.*)$/).flatten }
end

Timeout.timeout(60) do
  uri = URI(ARGV[0])
  http = Net::HTTP.new(uri.host, uri.port)
  http.use_ssl = true
  http.ca_file = ARGV[1]
  seen = http.start do
    { get: http.get("/").body, version: http.get("/version").body, posted: http.post("/digest", PIECE).body, downloaded: download(http),
      events: events(http) }
  end
  http.start do
    http.get("/")
    seen[:resumed] = http.instance_variable_get(:@socket).io.session_reused?
  end
  puts JSON.generate(**seen, echo: Client.new(uri, ARGV[1]).echo(PIECE) == PIECE)
end
