# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/http2_commands"

# Files of public_dir over HTTP/2: their bytes, ranges and conditions, and several large ones at once.
class Http2FilesTest < Minitest::Test
  include Fairlead::Test::Http2Commands

  SMALL = "0123456789" * 10
  LARGE = Random.new(7).bytes(3 << 20)

  def test_a_small_file_with_ranges_and_conditions
    server = serving
    whole = curl(server, "/small.txt")

    assert_equal [200, "2", "100", SMALL], [whole.status, whole.version, whole["content-length"], whole.body]
    assert_equal [206, "bytes 10-14/100", "01234"], answer_to(server, "range: bytes=10-14") { |answer| answer["content-range"] }
    assert_equal [416, "bytes */100"], answer_to(server, "range: bytes=500-") { |answer| answer["content-range"] }.first(2)
    assert_equal [304, nil, ""], answer_to(server, "if-none-match: #{whole["etag"]}") { |answer| answer["content-length"] }
    assert_equal [412, nil], answer_to(server, 'if-match: "other"') { |answer| answer["etag"] }.first(2)
  end

  def test_several_ranges_are_parts
    answer = curl(serving, "/small.txt", "-H", "range: bytes=0-1,50-51")

    assert_equal 206, answer.status
    assert_equal ["bytes 0-1/100", "bytes 50-51/100"], answer.body.scan(/^content-range: (.*?)\r$/i).flatten
  end

  def test_head_has_the_length_and_no_body
    answer = curl(serving, "/large.bin", "--head")

    assert_equal [200, LARGE.bytesize.to_s], [answer.status, answer["content-length"]]
  end

  # Each stream has its own share of the socket, and gets its own bytes.
  def test_large_files_at_the_same_time_on_one_connection
    seen = node(serving("-w", 2), <<~JS)
      const { createHash } = require("crypto")
      const digest = body => createHash("sha256").update(Buffer.from(body, "latin1")).digest("hex")
      const asked = Array.from({ length: 8 }, (_, index) => ask("/large.bin", { range: `bytes=${index}-` }))
      Promise.all(asked).then(responses => say(responses.map(([status, fields, body]) => [status, digest(body)])))
    JS

    assert_equal((0..7).map { |start| [206, Digest::SHA256.hexdigest(LARGE.byteslice(start..))] }, seen)
  end

  # A client that cancels one download, or does not read it, must not affect the others.
  def test_a_download_that_is_given_up_leaves_the_others_alone
    seen = node(serving, <<~JS)
      const given = session.request({ ":path": "/large.bin" }), paused = session.request({ ":path": "/large.bin" })
      paused.pause()
      given.once("data", () => given.close(http2.constants.NGHTTP2_CANCEL))
      given.on("close", () => ask("/large.bin").then(([status, , body]) => say([status, body.length])))
    JS

    assert_equal [200, LARGE.bytesize], seen
  end

  private

  def serving(*arguments)
    files = { "public/small.txt" => SMALL, "public/large.bin" => LARGE }
    serve("run ->(_env) { [404, {}, ['nothing']] }", "--public", "public", *arguments, files: files)
  end

  # Returns the status, the block's result for the response, and the body.
  def answer_to(server, field)
    answer = curl(server, "/small.txt", "-H", field)
    [answer.status, yield(answer), answer.body]
  end
end
