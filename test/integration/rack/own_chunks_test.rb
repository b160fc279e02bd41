# frozen_string_literal: true

require "test_helper"
require "support/http2_commands"
require "support/http_client"
require "support/rack_apps"

# Bodies that the application itself has chunked, with `transfer-encoding: chunked`: Rails up to 7.2 does so for `render
# stream: true`, and Rack::Chunked for everything. HTTP/1.0 and HTTP/2 cannot carry that framing.
class OwnChunksTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::HttpServing

  CutOff = Fairlead::Test::HttpClient::CutOff

  SETUP = <<~'RUBY'
    CHUNKS = "4\r\nWiki\r\n5;x=\"y\"\r\npedia\r\n0\r\n\r\n"

    # As in Rails.
    class Framed
      def initialize(*parts) = @parts = parts

      def each
        @parts.each { |part| yield "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" }
        yield "0\r\n\r\n"
      end
    end
  RUBY
  FIELDS = "{ 'content-type' => 'text/plain', 'transfer-encoding' => 'chunked' }"

  # Code of a body => its data.
  BODIES = {
    "[CHUNKS]" => "Wikipedia",
    "CHUNKS.each_char.to_a" => "Wikipedia",
    "Enumerator.new { |out| out << CHUNKS }" => "Wikipedia",
    "CHUNKS.each_char" => "Wikipedia",
    "Enumerator.new { |out| out << '' << nil << CHUNKS[0, 8] << '' << CHUNKS[8..] }" => "Wikipedia",
    "Framed.new('Wiki', 'pedia')" => "Wikipedia",
    "Framed.new" => "",
    "File.open('chunks')" => "from a file",
    "->(stream) { stream.write(CHUNKS); stream.close }" => "Wikipedia",
    "->(stream) { CHUNKS.each_char { |part| stream.write(part) }; stream.close }" => "Wikipedia",
    "->(stream) { stream.write(CHUNKS[0, 6]); Thread.new { stream.write(CHUNKS[6..]); stream.close } }" => "Wikipedia",
    "->(stream) { Thread.new { CHUNKS.each_char { |part| stream.write(part) }; stream.close } }" => "Wikipedia",
    "Framed.new('a' * 1_000_000, 'b' * 300_000)" => "#{"a" * 1_000_000}#{"b" * 300_000}",
    "[CHUNKS.sub('4', '0004').sub('Wiki', 'W' * 4)]" => "WWWWpedia",
    "[%(493e0\\r\\n\#{'c' * 300_000}\\r\\n) * 3, %(0\\r\\n\\r\\n)]" => "c" * 900_000
  }.freeze

  def test_the_data_of_every_kind_of_body_arrives_by_every_protocol
    server = serving
    BODIES.each_with_index do |(code, data), index|
      by_all_protocols(server, "/#{index}") { |body, protocol| assert_same_bytes data, body, "#{code} over #{protocol}" }
    end
    refute_includes server.stderr, "chunk"
  end

  def test_a_connection_of_1_1_goes_on_and_says_how_the_body_is_framed
    client = connect(serving)
    BODIES.each_with_index do |(code, data), index|
      next if code.include?("Thread") # a kept stream ends its connection

      answer = client.get("/#{index}")
      assert_same_bytes data, answer.body, code
      assert_equal ["chunked", nil, nil], [answer["transfer-encoding"], answer["content-length"], answer["connection"]], code
    end
  end

  def test_no_other_protocol_hears_of_the_framing
    server = serving
    old = connect(server).write("GET /0 HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").answer

    assert_equal [nil, "close"], [old["transfer-encoding"], old["connection"]]
    refute_match(/^(transfer-encoding|connection):/i, curl(server, "/0").fields)
  end

  def test_a_response_without_a_body_is_complete
    server = serving
    client = connect(server)
    %w[/0 /5 /7 /8].each { |path| assert_equal 200, client.request("HEAD", path).answer(to: "HEAD").status, path }
    [204, 304].each do |status|
      client.request("GET", "/0", { "x-status" => status.to_s })
      assert_equal [status, nil], client.answer.then { |answer| [answer.status, answer["transfer-encoding"]] }
    end
    assert_equal "Wikipedia", client.get("/0").body
    assert_equal [200, "2"], curl(server, "/0", "--head").to_a.values_at(0, 1)
    [204, 304].each { |status| assert_equal [status, ""], curl(server, "/0", "-H", "x-status: #{status}").to_a.values_at(0, 3) }
  end

  def test_it_is_the_same_with_compression
    server = serving("--compress", "--compress-min-bytes", "1")
    BODIES.each_with_index do |(code, data), index|
      by_all_protocols(server, "/#{index}", "accept-encoding: gzip") { |body, protocol| assert_same_bytes data, body, "#{code} over #{protocol}" }
    end
  end

  def test_trailers_stay_where_the_protocol_has_them_behind_the_chunks
    server = serving
    fields = { "x-body" => "[CHUNKS.chomp(%(\\r\\n)), %(X-Sum: 7\\r\\n\\r\\n)]" }
    client = connect(server).request("GET", "/any", fields)

    assert_includes client.read_through("0\r\nX-Sum: 7\r\n\r\n"), "\r\n4\r\nWiki\r\n"
    assert_equal "Wikipedia", client.get("/0").body
    assert_equal "Wikipedia", curl(server, "/any", "-H", "x-body: #{fields["x-body"]}").body
    assert_equal "Wikipedia", old(server, "/any", "x-body: #{fields["x-body"]}")
  end

  # Code of a body => message about it.
  FAULTY = {
    "['<html>']" => "has no valid chunks", "[%(4\\r\\nWikipedia)]" => "has no valid chunks",
    "[%(5\\r\\nWiki\\r\\n0\\r\\n\\r\\n)]" => "has no valid chunks",
    "Enumerator.new { |out| out << %(4\\r\\nWiki\\r\\n) << 'x' }" => "has no valid chunks",
    "['']" => "has no last chunk", "[]" => "has no last chunk", "[%(4\\r\\nWiki\\r\\n)]" => "has no last chunk",
    "[%(4\\r\\nWi)]" => "has no last chunk",
    "[%(4\\r\\nWiki\\r\\n0\\r\\n)]" => "has no last chunk", "Enumerator.new { |out| out << %(4\\r\\nWiki\\r\\n) }" => "has no last chunk",
    "->(stream) { stream.write(%(4\\r\\nWiki\\r\\n)); stream.close }" => "has no last chunk"
  }.freeze

  def test_faulty_chunks_end_in_a_response_that_is_seen_to_be_incomplete_and_one_message
    FAULTY.each do |code, complaint|
      server = serving
      assert_cut_off(server, code)
      wait_until("3 messages") { server.stderr.scan(complaint).size == 3 }
      assert_equal 3, server.stderr.scan("the response is aborted (/any)").size, server.stderr
      assert_equal 3, server.stderr.scan(/chunk.* aborted/).size, server.stderr
    end
  end

  def test_a_stream_that_goes_on_after_the_call_may_be_faulty_as_well
    { "has no last chunk" => "stream.close", "has no valid chunks" => "stream.write('x') rescue 0" }.each do |complaint, code|
      server = serving
      assert_cut_off(server, "->(stream) { stream.write(%(4\\r\\nWiki\\r\\n)); Thread.new { #{code} } }")
      wait_until("3 messages") { server.stderr.scan(complaint).size == 3 }
    end
  end

  def test_what_comes_after_the_last_chunk_is_left_out_and_complained_of
    server = serving
    code = "[CHUNKS, 'HTTP/1.1 200 OK', %(\\r\\n)]"
    client = connect(server)

    2.times { assert_equal "Wikipedia", client.request("GET", "/any", { "x-body" => code }).answer.body }
    assert_equal "Wikipedia", curl(server, "/any", "-H", "x-body: #{code}").body
    server.wait_for_output(%r{a body that goes on after its last chunk; the rest was left out \(/any\)})
  end

  # The data would have to be decompressed.
  def test_a_coding_that_the_server_cannot_decode_is_an_error_where_the_protocol_has_none
    ["gzip, chunked", "gzip", "chunked, chunked"].each do |coding|
      server = serve(unlinted("[200, { 'transfer-encoding' => #{coding.inspect} }, [%(0\\r\\n\\r\\n)]]"))

      assert_equal 500, curl(server).status, coding
      assert_equal 500, connect(server).write("GET / HTTP/1.0\r\n\r\n").answer.status, coding
      wait_until("2 messages") { server.stderr.scan("a transfer-encoding other than chunked can only be sent over HTTP/1.1 (/)").size == 2 }
      assert_includes connect(server).request.read_through("\r\n\r\n"), "\r\ntransfer-encoding: #{coding}\r\n"
    end
  end

  def test_two_fields_for_one_framing_are_sent_once
    server = serve(unlinted("[200, { 'transfer-encoding' => 'chunked', 'Transfer-Encoding' => 'chunked' }, [%(2\\r\\nok\\r\\n0\\r\\n\\r\\n)]]"))

    assert_equal "ok", get(server).body
    assert_equal "ok", curl(server).body
  end

  # Without that framing, an HTTP/1.0 response ends with its connection.
  def test_a_response_of_1_0_that_breaks_off_is_reset
    server = serve(unlinted("[200, {}, Enumerator.new { |out| out << 'begun'; raise 'on purpose' }]"))

    assert_raises(Errno::ECONNRESET) { whole(server, "") }
  end

  private

  def serving(*arguments)
    cases = BODIES.keys.each_with_index.map { |code, index| "when '/#{index}' then #{code}" }
    serve(unlinted(<<~RUBY, setup: SETUP), *arguments, files: { "chunks" => "b\r\nfrom a file\r\n0\r\n\r\n" })
      body = case env["PATH_INFO"]
             #{cases.join("\n")}
             else eval(env["HTTP_X_BODY"])
             end
      [Integer(env.fetch("HTTP_X_STATUS", "200")), #{FIELDS}, body]
    RUBY
  end

  def by_all_protocols(server, path, *fields)
    yield old(server, path, *fields), "HTTP/1.0"
    yield get(server, path, fields.to_h { |field| field.split(": ", 2) }).body, "HTTP/1.1"
    yield curl(server, path, *fields.flat_map { |field| ["-H", field] }).body, "HTTP/2"
  end

  def old(server, path, *fields)
    connect(server).write("GET #{path} HTTP/1.0\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n").answer.body
  end

  # With each protocol, on a connection that is followed by another request.
  def assert_cut_off(server, code)
    client = connect(server)
    2.times { |number| client.request("GET", number.zero? ? "/any" : "/0", { "x-body" => code }) }
    cut = assert_raises(CutOff, code) { client.answer }
    refute_includes cut.message, "pedia", "another response follows #{code}"
    assert_raises(Errno::ECONNRESET, code) { whole(server, "x-body: #{code}\r\n") }
    _, status = Open3.capture2e("curl", "--silent", "--http2-prior-knowledge", "--max-time", "20", "-H", "x-body: #{code}",
                                "http://127.0.0.1:#{server.port}/any")
    assert_equal 92, status.exitstatus, "HTTP/2 stream error: #{code}"
  end

  # Bytes that an HTTP/1.0 client reads until the connection ends.
  def whole(server, fields)
    TCPSocket.open("127.0.0.1", server.port) do |socket|
      socket.write("GET /any HTTP/1.0\r\n#{fields}\r\n")
      socket.read
    end
  end

  def assert_same_bytes(expected, actual, message)
    assert expected.b == actual.b, "#{message}: #{actual[0, 100].inspect} instead of #{expected[0, 100].inspect}"
  end
end
