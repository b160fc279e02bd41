# frozen_string_literal: true

require "test_helper"
require "support/content_codings"
require "support/file_serving"

# Bodies that are compressed while the application produces them: every piece is sent before the server asks for the next
# one.
class CompressedStreamsTest < Minitest::Test
  include Fairlead::Test::FileServing
  include Fairlead::Test::ContentCodings

  CutOff = Fairlead::Test::HttpClient::CutOff

  # "/pieces" waits in the middle until the file "go" exists; "/many" yields many pieces of every size.
  APP = <<~'RUBY'
    PLAIN = { "content-type" => "text/plain" }.freeze
    def pieces = Array.new(200) { |number| "#{number} " * (number * 7) }
    run lambda { |env|
      body = case env["PATH_INFO"]
             when "/pieces"
               Enumerator.new do |out|
                 out << "the first piece, "
                 sleep 0.01 until File.exist?("go")
                 out << "and the last one"
               end
             when "/many" then pieces.each
             when "/empty" then [].each
             when "/blank" then ["", "a", "", "b", ""].each
             when "/large" then Enumerator.new { |out| 20.times { |seed| out << Random.new(seed).bytes(400_000) } }
             when "/streamed" then ->(stream) { pieces.each { |piece| stream << piece } and stream.close }
             when "/raise" then Enumerator.new { |out| out << "a piece" and raise("no") }
             when "/hijacked" then next [200, PLAIN.merge("rack.hijack" => ->(io) { io.write(pieces.join) && io.close }), []]
             when "/events"
               env["rack.upgrade"] = Class.new { def self.on_open(client) = client.write("tick " * 1000) }
               next [200, {}, []]
             when "/endless" then Enumerator.new { |out| loop { out << Random.bytes(50_000) } }
             end
      body.define_singleton_method(:close) { File.write("closed", "") } unless body.is_a?(Proc)
      [200, PLAIN, body]
    }
  RUBY

  # Content of "/many" and "/streamed", in one piece.
  PIECES = Array.new(200) { |number| "#{number} " * (number * 7) }.join.freeze

  CODINGS = %w[br zstd gzip].freeze

  def setup
    @server = serve_folder({}, "--compress", app: APP)
  end

  def test_a_piece_arrives_before_the_next_one_is_made
    each_coding do |coding|
      FileUtils.rm_f(@server.path("go"))
      client = ask_for(coding, "/pieces")
      head = client.read_through("\r\n\r\n")
      assert_includes head, "content-encoding: #{coding}\r\n"
      beginning = chunk(client)
      beginning << chunk(client) while decode_beginning(coding, beginning).bytesize < "the first piece, ".bytesize
      assert_equal "the first piece, ", decode_beginning(coding, beginning), coding

      @server.write("go", "")
      until (more = chunk(client)).empty?
        beginning << more
      end
      assert_equal "the first piece, and the last one", decode(coding, beginning), coding
    end
  end

  def test_pieces_of_every_size_are_one_text
    noise = Array.new(20) { |seed| Random.new(seed).bytes(400_000) }.join
    each_coding do |coding|
      { "/many" => PIECES, "/blank" => "ab", "/empty" => "", "/large" => noise }.each do |path, expected|
        answer = ask_for(coding, path).answer
        assert_equal expected.b, answer["content-encoding"] ? decode(coding, answer.body) : answer.body, "#{coding} #{path}"
      end
    end
  end

  def test_a_stream_that_the_application_writes_to
    each_coding do |coding|
      answer = ask_for(coding, "/streamed").answer
      assert_equal PIECES, answer["content-encoding"] ? decode(coding, answer.body) : answer.body, coding
    end
  end

  def test_an_answer_that_the_application_frames_itself_is_left_alone
    answer = ask_for("gzip", "/hijacked").answer

    assert_equal [PIECES, nil], [answer.body, answer["content-encoding"]]
  end

  def test_events_are_left_alone
    client = connect(@server).request("GET", "/events", { "accept" => "text/event-stream", "accept-encoding" => "gzip" })

    refute_includes client.read_through("\r\n\r\n"), "content-encoding"
    assert_includes client.read_through("tick \n\n"), "data: #{"tick " * 1000}"
  end

  def test_a_client_of_http_one_point_oh
    client = connect(@server).write("GET /many HTTP/1.0\r\naccept-encoding: gzip\r\n\r\n")
    answer = client.answer

    assert_equal PIECES, decode("gzip", answer.body)
    assert_nil answer["transfer-encoding"]
  end

  def test_an_error_on_the_way_cuts_the_connection
    each_coding { |coding| assert_raises(CutOff, coding) { ask_for(coding, "/raise").answer } }
    wait_until("the log") { @server.stderr.scan("no (RuntimeError)").size == CODINGS.count { |coding| decodable?(coding) } }
  end

  def test_a_client_that_goes_ends_the_body
    each_coding do |coding|
      FileUtils.rm_f(@server.path("closed"))
      client = ask_for(coding, "/endless")
      assert client.readable?(20)
      client.reset

      wait_until("the body to be closed") { File.exist?(@server.path("closed")) }
    end
    assert_equal "ab", ask_for("identity", "/blank").answer.body
  end

  private

  def ask_for(coding, path) = connect(@server).request("GET", path, { "accept-encoding" => coding })

  # Returns the next chunk of a chunked body.
  def chunk(client)
    size = Integer(client.read_through("\r\n").chomp, 16)
    client.read(size + 2).delete_suffix("\r\n")
  end

  def each_coding(&block) = CODINGS.select { |coding| decodable?(coding) }.each(&block)
end
