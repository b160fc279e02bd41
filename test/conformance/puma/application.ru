# frozen_string_literal: true

# The application for comparing the responses of Puma and Fairlead.

require "json"
require "rack"

LOWER = !Rack.release.start_with?("2.")
LISTS = LOWER ? ->(*values) { values } : ->(*values) { values.join("\n") }
PLAIN = { "content-type" => "text/plain" }.freeze

# A body without a length.
class Pieces
  def initialize(*pieces) = @pieces = pieces
  def each(&block) = @pieces.each(&block)
end

# Leaves out values that differ from run to run or name the server. For objects it prints their kind, and for an empty value
# that it exists.
DUMP = lambda do |env|
  shown = env.except("SERVER_SOFTWARE", "REMOTE_PORT", "rack.version").transform_values do |value|
    case value
    when String, true, false, nil then value
    when Numeric then "a number"
    when Array then "a list"
    else value.respond_to?(:call) ? "a callable" : "an object"
    end
  end
  [200, PLAIN.dup, [JSON.pretty_generate(shown.sort.to_h)]]
end

ANSWERS = {
  "/" => ->(_) { [200, PLAIN.dup, ["hello"]] },
  "/probe" => ->(_) { [200, PLAIN.dup, ["the connection was kept"]] },
  "/env" => DUMP,
  "/echo" => ->(env) { [200, PLAIN.dup, [env["rack.input"].read]] },
  "/empty" => ->(_) { [200, PLAIN.dup, []] },
  "/strings" => ->(_) { [200, PLAIN.dup, %w[one two three]] },
  "/each" => ->(_) { [200, PLAIN.dup, Pieces.new("one", "two", "", "three")] },
  "/length" => ->(_) { [200, { "content-length" => "5" }, Pieces.new("he", "llo")] },
  "/lists" => ->(_) { [200, { "set-cookie" => LISTS["a=1", "b=2"], "content-type" => "text/plain" }, ["x"]] },
  "/names" => ->(_) { [200, { (LOWER ? "x-upper" : "X-Upper") => "yes", "rack.hidden" => "no", "x-empty" => "" }, ["x"]] },
  "/control" => ->(_) { [200, { "x-bad" => "a\u0001b", "x-good" => "a\tb" }, ["x"]] },
  "/split" => ->(_) { [200, { "x-evil" => "a\r\nset-cookie: evil=1" }, ["x"]] },
  "/close" => ->(_) { [200, { "connection" => "close" }, ["bye"]] },
  "/date" => ->(_) { [200, { "content-type" => "text/html", "cache-control" => "no-store" }, ["<p>ä</p>"]] },
  "/file" => ->(_) { [200, PLAIN.dup, File.open(__FILE__).tap { |file| file.pos = 0 }] },
  "/stream" => ->(_) { [200, PLAIN.dup, ->(stream) { stream.write("streamed") && stream.close }] },
  "/hijack" => ->(_) { [200, { "content-length" => "6", "rack.hijack" => ->(io) { io.write("hijack") && io.close } }, []] },
  "/taken" => lambda do |env|
    io = env["rack.hijack"].call
    io.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\ntaken")
    io.close
    [200, {}, []]
  end,
  "/raise" => ->(_) { raise "oops" },
  "/hints" => lambda do |env|
    env["rack.early_hints"]&.call("link" => "</style.css>; rel=preload")
    [200, PLAIN.dup, ["hinted"]]
  end
}.freeze

run lambda { |env|
  path = env["PATH_INFO"]
  if path.start_with?("/status/")
    code = Integer(path.delete_prefix("/status/"), 10)
    next [code, [204, 304].include?(code) ? {} : PLAIN.dup, [204, 304].include?(code) ? [] : ["status"]]
  end
  ANSWERS.fetch(path) { ->(_) { [404, PLAIN.dup, ["no"]] } }.call(env)
}
