# frozen_string_literal: true

# The operations that grow (bench/harness/growth).
#
#   /held                                waits until the lock of the file `gate` is free, then 1 ms
#   /events?channel=C, /events?pattern=P an event stream or a WebSocket of a channel, or of all that match; they move to new workers
#   /publish?channel=C&times=N           publishes so many messages

# Subscribes each client to the channel or pattern in its path.
class Subscriber
  def initialize(options)
    @options = options
  end

  def self.on_takeover(client, state)
    new(state.split("&").to_h { |pair| pair.split("=", 2) }).tap { |subscriber| subscriber.on_open(client) }
  end

  def on_open(client)
    client.subscribe(@options["channel"] || @options["pattern"], **(@options["pattern"] ? { match: :redis } : {}))
  end

  def on_handover(_client) = @options.map { |pair| pair.join("=") }.join("&")
end

SERVER = %i[Fairlead Iodine Agoo].find { |name| Object.const_defined?(name) }&.then { |name| Object.const_get(name) }
MESSAGE = ("x" * 60).freeze
OK = [200, { "content-type" => "text/plain" }, ["ready\n"]].freeze

held = lambda do
  File.open("gate", "r") { |gate| gate.flock(File::LOCK_SH) } if File.exist?("gate")
  sleep 0.001
end

run(lambda do |env|
  options = env["QUERY_STRING"].split("&").to_h { |pair| pair.split("=", 2) }
  case env["PATH_INFO"]
  when "/held" then held.call
  when "/events" then env["rack.upgrade"] = Subscriber.new(options) if env["rack.upgrade?"]
  when "/publish" then Integer(options["times"]).times { SERVER.publish(options["channel"], MESSAGE) }
  else env["rack.input"]&.read if env["REQUEST_METHOD"] == "POST"
  end
  [OK[0], OK[1].dup, OK[2]]
end)
