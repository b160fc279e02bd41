# frozen_string_literal: true

require "test_helper"
require "support/byte_ranges"
require "support/content_codings"
require "support/file_serving"
require "support/processes"

# Everything at once: clients that pipeline requests for files from memory and from disk, for parts of them, for files that
# the application names or opens, for compressed and plain responses, at random, and clients that disconnect in the middle.
# Every response must be correct. The seed is minitest's: `--seed` repeats a run.
class MixtureTest < Minitest::Test
  include Fairlead::Test::FileServing
  include Fairlead::Test::Processes

  LARGE = Random.new(7).bytes(700_000).freeze
  SMALL = Random.new(8).bytes(5_000).freeze
  TEXT = ("what is to be compressed, " * 2_000).freeze

  APP = <<~'RUBY'
    TEXT = "what is to be compressed, " * 2_000
    PLAIN = { "content-type" => "text/plain" }.freeze
    run lambda { |env|
      case env["PATH_INFO"]
      when "/named" then [200, { "x-sendfile" => File.expand_path("public/large.bin") }, []]
      when "/named-small" then [200, { "x-accel-redirect" => "/internal/small.bin" }, []]
      when "/opened" then [200, {}, File.open("public/large.bin", "rb")]
      when "/text" then [200, PLAIN.dup, [TEXT]]
      when "/pieces" then [200, PLAIN.dup, TEXT.scan(/.{1,3000}/).each]
      when "/posted" then [200, {}, [env["rack.input"].read.reverse]]
      else [404, { "x-from" => "app" }, ["app"]]
      end
    }
  RUBY

  OPTIONS = ["--public", "public", "--sendfile-root", "public", "--sendfile-root", "/internal/=public", "--compress"].freeze

  # Requests => check of the response.
  GZIP = { "accept-encoding" => "gzip" }.freeze
  STEPS = [
    ["GET", "/small.bin", {}, ->(answer) { answer.body == SMALL }],
    ["GET", "/large.bin", {}, ->(answer) { answer.body == LARGE }],
    ["HEAD", "/large.bin", {}, ->(answer) { answer["content-length"] == LARGE.bytesize.to_s }],
    ["GET", "/large.bin", { "range" => "bytes=100000-599999" }, ->(answer) { answer.status == 206 && answer.body == LARGE[100_000..599_999] }],
    ["GET", "/small.bin", { "range" => "bytes=-10" }, ->(answer) { answer.status == 206 && answer.body == SMALL[-10..] }],
    ["GET", "/large.bin", { "range" => "bytes=0-99999,-100000" }, lambda { |answer|
      Fairlead::Test::ByteRanges.parts(answer).map(&:text) == [LARGE[0, 100_000], LARGE[-100_000..]]
    }],
    ["GET", "/large.bin", { "if-none-match" => "*" }, ->(answer) { answer.status == 304 }],
    ["GET", "/sub", {}, ->(answer) { [answer.status, answer["location"]] == [301, "/sub/"] }],
    ["GET", "/named", {}, ->(answer) { answer.body == LARGE }],
    ["GET", "/named", { "range" => "bytes=5-300004" }, ->(answer) { answer.body == LARGE[5..300_004] }],
    ["GET", "/named-small", {}, ->(answer) { answer.body == SMALL }],
    ["GET", "/opened", {}, ->(answer) { answer.body == LARGE }],
    ["GET", "/text", GZIP, ->(answer) { Fairlead::Test::ContentCodings.decode("gzip", answer.body) == TEXT }],
    ["GET", "/pieces", GZIP, ->(answer) { Fairlead::Test::ContentCodings.decode("gzip", answer.body) == TEXT }],
    ["GET", "/text", {}, ->(answer) { answer.body == TEXT }],
    ["POST", "/posted", { "content-length" => "5" }, ->(answer) { answer.body == "olleh" }, "hello"],
    ["GET", "/missing", {}, ->(answer) { answer["x-from"] == "app" }]
  ].freeze

  CLIENTS = 6
  ROUNDS = 12

  def test_in_one_process = mix
  def test_with_one_thread = mix("-t", "1")
  def test_in_two_workers = mix("-w", "2")
  def test_without_memory = mix("--file-cache-bytes", "0")

  private

  def mix(*arguments)
    files = { "public/small.bin" => SMALL, "public/large.bin" => LARGE, "public/sub/index.html" => "index" }
    server = serve_folder(files, *OPTIONS, *arguments, app: APP)
    random = Random.new(Minitest.seed)
    threads = Array.new(CLIENTS) do
      own = Random.new(random.rand(1 << 32))
      Thread.new { ROUNDS.times { own.rand(8).zero? ? vanish(server, own) : converse(server, own) } }
    end
    threads.each(&:join)

    assert_empty server.stderr
    assert_equal SMALL, get(server, "/small.bin").body
  end

  # Sends some requests at once on one connection, and checks their responses.
  def converse(server, random)
    steps = Array.new(random.rand(1..15)) { STEPS.sample(random: random) }
    client = random.rand(2).zero? ? connect(server) : narrow_client(server)
    writer = Thread.new { client.write(steps.map { |step| request(*step) }.join) }
    steps.each do |step|
      answer = client.answer(to: step[0])
      assert step[3].call(answer), "#{step.first(3)}: #{answer.head.inspect} and #{answer.body.bytesize} bytes"
    end
  ensure
    writer&.join
    client&.close
  end

  # The same, but the client disconnects after some of the responses.
  def vanish(server, random)
    client = narrow_client(server)
    client.write([*Array.new(8) { STEPS.sample(random: random) }, STEPS[1]].map { |step| request(*step) }.join)
    client.read(random.rand(1..200_000))
  rescue Fairlead::Test::HttpClient::CutOff
    nil
  ensure
    client.reset
  end

  def request(method, target, fields, _, body = "")
    "#{method} #{target} HTTP/1.1\r\nhost: a\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}"
  end
end
