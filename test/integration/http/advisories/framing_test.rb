# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Published advisories of other servers about the end of a request, one test for each: a request smuggled behind, or inside,
# another one must never be served.
class FramingAdvisoriesTest < Minitest::Test
  include Fairlead::Test::HttpServing

  SMUGGLED = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
  POST = "POST /open HTTP/1.1\r\nhost: a\r\n"
  CHUNKED = "#{POST}transfer-encoding: chunked\r\n\r\n".freeze

  def self.refuses(advisory, why, *requests, status: 400)
    define_method("test_#{advisory.downcase}_#{why.tr(" ", "_")}") do
      requests.each { |request| assert_not_smuggled(request, status) }
    end
  end

  refuses "CVE-2020-11076", "an invalid transfer encoding does not hide a request",
          "#{POST}transfer-encoding: chunked\x0B\r\n\r\n0\r\n\r\n", "#{POST}transfer-encoding: \x0Cchunked\r\n\r\n0\r\n\r\n",
          "#{POST}transfer-encoding : chunked\r\n\r\n0\r\n\r\n", "#{POST}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n"

  refuses "CVE-2020-11077", "what a proxy takes for a body is not served as a request",
          "#{POST}content-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
          "#{POST}transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n"

  refuses "CVE-2021-41136", "a bare line feed does not end a field",
          "#{POST}x: y\ncontent-length: 0\r\n\r\n", "GET /open HTTP/1.1\r\nhost: a\r\nx: y\n\n"

  refuses "CVE-2022-24790", "a lenient transfer encoding length or chunk is refused",
          "#{POST}content-length: 1_0\r\n\r\n", "#{POST}content-length: 0\r\ncontent-length: 10\r\n\r\n",
          "#{POST}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
          "#{CHUNKED}0x1\r\na\r\n0\r\n\r\n", "#{CHUNKED}1\r\naXX0\r\n\r\n"

  refuses "CVE-2023-40175", "a blank length and a malformed trailer are refused",
          "#{POST}content-length:\r\n\r\n", "#{POST}content-length: \r\n\r\n",
          "#{CHUNKED}0\r\nx: y\nz\r\n\r\n", "#{CHUNKED}0\r\n\nGET / HTTP/1.1\r\n\r\n"

  refuses "CVE-2026-68006", "framing fields spelt with underscores do not frame",
          "#{POST}content_length: #{SMUGGLED.bytesize}\r\n\r\n", "#{POST}transfer_encoding: chunked\r\n\r\n0\r\n\r\n",
          "#{POST}Content_Length: 5\r\ncontent-length: 0\r\n\r\n"

  refuses "CVE-2020-25613", "a transfer encoding that only looks like chunked is refused",
          "#{POST}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", "#{POST}transfer-encoding: chunkedfoo\r\n\r\n0\r\n\r\n", status: 501

  refuses "CVE-2024-47220", "length and transfer encoding together are refused",
          "#{POST}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"

  refuses "CVE-2025-6442", "the end of the head is read in one way only",
          "#{POST}x: y\r\r\n\r\n", "#{POST}x: y\r\n\n", "#{POST}x: y\n\r\n\r\n", "#{POST}x: y\r\rcontent-length: 3\r\n\r\n"

  refuses "CVE-2023-38697", "signs prefixes and line feeds in lengths and chunks are refused",
          "#{POST}content-length: +3\r\n\r\nabc", "#{POST}content-length: 0x3\r\n\r\nabc",
          "#{CHUNKED}+3\r\nabc\r\n0\r\n\r\n", "#{CHUNKED}0x3\r\nabc\r\n0\r\n\r\n", "#{CHUNKED}3;a\nb\r\nabc\r\n0\r\n\r\n"

  refuses "CVE-2020-7670", "repeated framing fields are refused",
          "#{POST}content-length: 3\r\ncontent-length: 3\r\n\r\nabc", "#{POST}content-length: 3, 3\r\n\r\nabc"

  refuses "CVE-2020-7659", "length and transfer encoding in any order are refused",
          "#{POST}transfer-encoding: chunked\r\nx: y\r\ncontent-length: 3\r\n\r\nabc"

  refuses "RUSTSEC-2021-0020", "every transfer encoding field is looked at",
          "#{POST}transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
          "#{POST}transfer-encoding: chunked\r\ntransfer-encoding: gzip\r\n\r\n0\r\n\r\n"

  refuses "RUSTSEC-2021-0078", "a length with a plus is refused", "#{POST}content-length: +3\r\n\r\nabc"

  refuses "RUSTSEC-2021-0079", "a chunk size that overflows is refused",
          "#{CHUNKED}f0000000000000003\r\nabc\r\n0\r\n\r\n", "#{CHUNKED}8000000000000000\r\nabc\r\n0\r\n\r\n"

  refuses "CVE-2026-2835", "a transfer encoding in HTTP 1.0 is refused",
          "POST /open HTTP/1.0\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n0\r\n\r\n"

  def test_rustsec_2020_0008_the_body_of_a_get_is_not_served_as_a_request
    assert_body_not_served("GET /open HTTP/1.1\r\nhost: a\r\ncontent-length: #{SMUGGLED.bytesize}\r\n\r\n#{SMUGGLED}")
  end

  def test_cve_2025_4366_a_body_that_nobody_read_is_not_served_as_a_request
    large = SMUGGLED * 5000
    assert_body_not_served("#{POST}content-length: #{large.bytesize}\r\n\r\n#{large}")
    assert_body_not_served("#{CHUNKED}#{large.bytesize.to_s(16)}\r\n#{large}\r\n0\r\n\r\n")
  end

  def test_cve_2026_2833_bytes_behind_an_upgrade_are_no_request_until_the_body_has_ended
    upgrade = "connection: upgrade\r\nupgrade: websocket\r\n"
    assert_body_not_served("#{POST}#{upgrade}content-length: #{SMUGGLED.bytesize}\r\n\r\n#{SMUGGLED}")
  end

  private

  def app
    linted("Notes.add(env['PATH_INFO']); [200, { 'content-type' => 'text/plain' }, [env['PATH_INFO']]]")
  end

  def assert_not_smuggled(request, status)
    @server ||= serve(app)
    client = connect(@server)
    answer = client.write("#{request}#{SMUGGLED}").answer

    assert_equal status, answer.status, request
    assert_predicate client, :closed?, request
    assert_empty notes(@server), request
  end

  def assert_body_not_served(request)
    @server ||= serve(app)
    client = connect(@server).write("#{request}GET /next HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal %w[/open /next], Array.new(2) { client.answer.body }
    refute_includes notes(@server), "/smuggled"
  end
end
