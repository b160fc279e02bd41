# frozen_string_literal: true

# The operations that grow (bench/harness/growth).
#
#   /held                                waits until the lock of the file `gate` is free, then 1 ms
#   /events?channel=C, /events?pattern=P an event stream or a WebSocket of a channel, or of all that match; they move to new workers
#   /events?channels=C/&suffix=S&first=N&number=M  the same of M channels C/N, …; `patterns` too, which end with the suffix
#   /publish?channel=C&times=N           publishes so many messages
#   /large                               300,000 bytes
#   /parts                               reads a body of several parts
#   /timers?what=W&count=N               `add`s timers, adds timers and `cancel`s them, adds timers and lets them `run`, or `clear`s those of `add`

# Subscribes each client to the channel or pattern in its path.
class Subscriber
  def initialize(options)
    @options = options
  end

  def self.on_takeover(client, state)
    new(state.split("&").to_h { |pair| pair.split("=", 2) }).tap { |subscriber| subscriber.on_open(client) }
  end

  def on_open(client)
    matching = @options["pattern"] || @options["patterns"] ? { match: :redis } : {}
    names.each { |name| client.subscribe(name, **matching) }
  end

  def on_handover(_client) = @options.map { |pair| pair.join("=") }.join("&")

  private

  def names
    prefix = @options["channels"] || @options["patterns"] or return [@options["channel"] || @options["pattern"]]
    first = Integer(@options["first"])
    Array.new(Integer(@options["number"])) { |index| "#{prefix}#{first + index}#{@options["suffix"]}" }
  end
end

# Timers of the application, in hours and at once.
module Timers
  KEPT = [] # rubocop:disable Style/MutableConstant

  module_function

  def do(what, count)
    case what
    when "add" then count.times { KEPT << Fairlead.run_after(3600 + rand) { raise "it is not due" } }
    when "cancel" then Array.new(count) { Fairlead.run_after(3600 + rand) { raise "it is not due" } }.each(&:cancel)
    when "run" then run(count)
    when "clear" then KEPT.pop(count).each(&:cancel)
    end
  end

  def run(count)
    done = Thread::Queue.new
    count.times { Fairlead.run_after(0) { done << true } }
    count.times { done.pop }
  end
end

SERVER = %i[Fairlead Iodine Agoo].find { |name| Object.const_defined?(name) }&.then { |name| Object.const_get(name) }
MESSAGE = ("x" * 60).freeze
LARGE = ("x" * 300_000).freeze
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
  when "/large" then next [200, { "content-type" => "text/plain", "content-length" => LARGE.bytesize.to_s }, [LARGE]]
  when "/timers" then Timers.do(options["what"], Integer(options["count"]))
  when "/parts" then Rack::Request.new(env).POST
  when "/publish" then Integer(options["times"]).times { SERVER.publish(options["channel"], MESSAGE) }
  else env["rack.input"]&.read if env["REQUEST_METHOD"] == "POST"
  end
  [OK[0], OK[1].dup, OK[2]]
end)
