# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/http_client"
require "support/http2_commands"
require "support/processes"
require "support/rack_apps"

# Responses of applications over HTTP/2: complete, in pieces, large, with hints, and failing ones.
class Http2ResponsesTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::Processes
  include Fairlead::Test::RackApps

  # Streams that are written to forever, and the number of successful writes.
  KEPT = <<~'RUBY'
    write = lambda do |stream|
      loop { stream.write("x" * 10_000) && WRITES << true }
    rescue IOError => e
      Notes.add(e.class.name)
    end
    env["PATH_INFO"] == "/kept" ? [200, {}, ->(stream) { Thread.new { write.call(stream) } }] : [200, {}, [WRITES.size.to_s]]
  RUBY

  SETUP = <<~'RUBY'
    class Pieces
      def each = 64.times { |index| yield (index % 10).to_s * 65_536 }
    end
    class Broken
      def each
        yield "one"
        raise "broken"
      end
    end
  RUBY
  APP = <<~'RUBY'
    case env["PATH_INFO"]
    when "/pieces" then [200, { "content-type" => "text/plain" }, Pieces.new]
    when "/broken" then [200, { "content-type" => "text/plain" }, Broken.new]
    when "/fields"
      cookies = Rack.release.to_i < 3 ? "a=1\nb=2" : %w[a=1 b=2]
      [200, { "content-type" => "text/plain", "set-cookie" => cookies, "x-name" => "" }, ["ok"]]
    when "/lost"
      [200, {}, ->(stream) { Thread.new { stream.write("part") && Thread.current.kill } }]
    when "/empty" then [204, {}, []]
    when "/hints"
      env["rack.early_hints"].call("link" => "</a.css>; rel=preload")
      [200, { "content-type" => "text/plain" }, ["hinted"]]
    else raise "on purpose"
    end
  RUBY
  PIECES = (0..63).map { |index| (index % 10).to_s * 65_536 }.join

  # Memory and a temporary file take turns with the socket, often enough to reach their limits in many ways.
  def test_large_ones_are_whole_each_time
    server = serving("-t", 3)
    seen = node(server, <<~JS)
      const lengths = []
      const again = count => count ? ask("/pieces").then(([, , body]) => { lengths.push(body.length); return again(count - 1) }) : say(lengths)
      again(30)
    JS

    assert_equal [PIECES.bytesize] * 30, seen
    assert_equal Digest::SHA256.hexdigest(PIECES), Digest::SHA256.hexdigest(curl(server, "/pieces").body)
  end

  def test_fields_and_no_body
    server = serving
    answer = curl(server, "/fields")

    assert_equal ["a=1", "b=2"], answer.fields.scan(/^set-cookie: (.*?)\r$/).flatten
    assert_equal [204, ""], curl(server, "/empty").to_a.values_at(0, 3)
    refute_match(/^(connection|transfer-encoding|keep-alive):/i, answer.fields + curl(server, "/pieces").fields)
  end

  # RFC 9113 §8.1: a reset, instead of END_STREAM.
  def test_one_that_breaks_off_is_reset_and_the_connection_goes_on
    seen = node(serving, <<~JS)
      ask("/broken").then(() => say("complete"), error => ask("/empty").then(([status]) => say([error.code, status])))
    JS

    assert_equal ["ERR_HTTP2_STREAM_ERROR", 204], seen
  end

  def test_a_stream_whose_writer_has_died_is_reset_and_the_connection_goes_on
    seen = node(serve(unlinted(APP, setup: SETUP)), <<~JS)
      ask("/lost").then(() => say("complete"), error => ask("/empty").then(([status]) => say([error.code, status])))
    JS

    assert_equal ["ERR_HTTP2_STREAM_ERROR", 204], seen
  end

  def test_an_application_that_raises_is_a_500_of_its_own_stream
    seen = node(serving, 'Promise.all([ask("/raise"), ask("/fields")]).then(responses => say(responses.map(([status]) => status)))')

    assert_equal [500, 200], seen
  end

  def test_early_hints_come_first
    output = nghttp(serving("--early-hints"), "/hints", options: ["-v"])

    assert_equal %w[103 200], output.scan(/:status: (\d+)/).flatten
    assert_match(%r{:status: 103\n.*link: </a.css>; rel=preload}, output)
  end

  # The server does not wait for a stream that the client has reset.
  def test_a_stream_that_is_reset_frees_its_thread
    server = serve(<<~'RUBY', "-t", "1:1")
      body = Enumerator.new { |out| loop { out << "x" * 65_536 } }
      run ->(env) { env["PATH_INFO"] == "/endless" ? [200, {}, body] : [200, {}, ["here"]] }
    RUBY
    seen = node(server, <<~JS)
      const endless = session.request({ ":path": "/endless" })
      endless.once("data", () => endless.close(http2.constants.NGHTTP2_CANCEL))
      endless.on("close", () => ask("/").then(([, , body]) => say(body)))
    JS

    assert_equal "here", seen
  end

  # Its threads wait for room when the client disconnects, each in a different kept response.
  def test_responses_that_go_on_are_forgotten_with_their_client
    server = serve(unlinted(KEPT, setup: "WRITES = Queue.new\n"))
    node(server, 'ask("/writes").then(say)')
    pid = server.serving_pid
    before = wait_until("a quiet server") { clients(pid, server.port).empty? && descriptors(pid) }
    node(server, <<~'JS')
      const kept = Array.from({ length: 8 }, () => session.request({ ":path": "/kept" }))
      kept.forEach(stream => stream.on("error", () => {}))
      const untilStuck = async last => {
        const [, , writes] = await ask("/writes")
        return Number(writes) > 8 && writes === last ? writes : untilStuck(writes)
      }
      untilStuck().then(() => say("gone"))
    JS

    assert_equal ["Fairlead::ClosedError"] * 8, wait_for_notes(server, 8)
    wait_for_closed_descriptors(pid, before)
  end

  private

  def serving(*arguments) = serve(linted(APP, setup: SETUP), *arguments)
end
