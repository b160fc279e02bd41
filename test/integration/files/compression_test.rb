# frozen_string_literal: true

require "test_helper"
require "support/content_codings"
require "support/file_serving"

# Compressed responses of the application (`--compress`), decoded with independent code: selection, coding, and changes of
# their fields (RFC 9110 §8.4, §12.5.3, §8.8.1).
class AnswerCompressionTest < Minitest::Test
  include Fairlead::Test::FileServing
  include Fairlead::Test::ContentCodings

  CODINGS = %w[br zstd gzip].freeze

  # accept-encoding => coding of the response.
  CHOICES = {
    "gzip, deflate, br, zstd" => "zstd", "gzip, zstd" => "zstd", "gzip;q=1, br;q=0.9" => "gzip", "*" => "zstd",
    "br;q=0, *;q=0.5, identity;q=0.1" => "zstd", "x-gzip" => "gzip", "identity;q=0, gzip;q=0.1" => "gzip",
    "gzip;q=0" => nil, "deflate" => nil, "identity" => nil, "" => nil
  }.freeze

  TEXT = Array.new(2000) { |number| "line #{number} of what is to be compressed\n" }.join.freeze

  # Responses of an application (with TEXT) that the server does not compress.
  LEFT_ALONE = {
    "a short text" => "[200, PLAIN, ['x' * 1023]]",
    "what is encoded already" => "[200, PLAIN.merge('content-encoding' => 'gzip'), [TEXT]]",
    "a named identity" => "[200, PLAIN.merge('content-encoding' => 'identity'), [TEXT]]",
    "what may not be transformed" => "[200, PLAIN.merge('cache-control' => 'public, no-transform'), [TEXT]]",
    "the same in capitals" => "[200, PLAIN.merge('Cache-Control' => 'No-Transform'), [TEXT]]",
    "a part" => "[206, PLAIN.merge('content-range' => 'bytes 0-9/10'), [TEXT]]",
    "a picture" => "[200, { 'content-type' => 'image/png' }, [TEXT]]",
    "an archive" => "[200, { 'content-type' => 'application/zip' }, [TEXT]]",
    "what has no type" => "[200, {}, [TEXT]]",
    "an event stream" => "[200, { 'content-type' => 'text/event-stream' }, [TEXT]]",
    "an event stream in pieces" => "[200, { 'content-type' => 'text/event-stream; charset=utf-8' }, TEXT.lines.each]"
  }.freeze

  def setup
    @client = connect(@server = serving("--compress"))
  end

  def test_every_coding_can_be_decoded
    each_coding do |coding|
      answer = answer_with("[200, PLAIN, [TEXT]]", coding)
      assert_equal [200, coding, TEXT], [answer.status, answer["content-encoding"], decode(coding, answer.body)]
      assert_equal answer.body.bytesize.to_s, answer["content-length"]
      assert_operator answer.body.bytesize, :<, TEXT.bytesize / 3
    end
  end

  def test_texts_of_every_size
    each_coding do |coding|
      [1024, 1025, 65_535, 65_536, 70_001, 1_000_000].each do |size|
        answer = answer_with("[200, PLAIN, [(TEXT * 20)[0, #{size}]]]", coding)
        assert_equal [coding, (TEXT * 20)[0, size]], [answer["content-encoding"], decode(coding, answer.body)]
      end
    end
  end

  def test_what_would_not_get_shorter_may_stay_as_it_is
    each_coding do |coding|
      answer = answer_with("[200, PLAIN, [Random.new(1).bytes(300_000)]]", coding)
      assert_equal Random.new(1).bytes(300_000), answer["content-encoding"] ? decode(coding, answer.body) : answer.body
      assert_equal [answer.body.bytesize.to_s, "accept-encoding"], [answer["content-length"], answer["vary"]]
    end
  end

  def test_a_body_of_several_strings_is_one_text
    each_coding do |coding|
      assert_equal TEXT, decode(coding, answer_with("[200, PLAIN, TEXT.lines]", coding).body)
      assert_equal TEXT, decode(coding, answer_with("[200, PLAIN, ['', TEXT, '']]", coding).body)
    end
  end

  def test_the_client_chooses
    CHOICES.each do |accepted, coding|
      answer = answer_with("[200, PLAIN, [TEXT]]", accepted)
      assert_equal [coding], [answer["content-encoding"]], accepted
      assert_equal TEXT, coding ? decode(coding, answer.body) : answer.body if coding.nil? || decodable?(coding)
    end
    assert_equal [nil, TEXT], @client.get("/", "x-code" => "[200, PLAIN, [TEXT]]").then { |answer| [answer["content-encoding"], answer.body] }
  end

  def test_some_answers_are_left_alone
    LEFT_ALONE.each do |name, code|
      plain = @client.get("/", "x-code" => code)
      answer = answer_with(code, "br, zstd, gzip")
      assert_equal plain.body, answer.body, name
      assert_equal [plain["content-encoding"]], [answer["content-encoding"]], name
      assert_equal [plain["content-length"]], [answer["content-length"]], name
    end
  end

  def test_answers_without_content_stay_so
    [204, 304].each do |status|
      answer = answer_with("[#{status}, { 'etag' => '\"a\"' }, []]", "gzip")
      assert_equal [status, "", nil], [answer.status, answer.body, answer["content-encoding"]]
    end
  end

  def test_caches_learn_that_there_are_several
    { "{}" => %w[accept-encoding], "{ 'vary' => 'Cookie' }" => %w[accept-encoding cookie], "{ 'vary' => 'Accept-Encoding' }" => %w[accept-encoding],
      "{ 'vary' => %w[Origin Cookie] }" => %w[accept-encoding cookie origin],
      "{ 'Vary' => 'X-Accept-Encoding' }" => %w[accept-encoding x-accept-encoding] }.each do |headers, expected|
      %w[gzip identity].each do |accepted|
        names = answer_with("[200, PLAIN.merge(#{headers}), [TEXT]]", accepted).all("vary").join(",").downcase.split(/\s*,\s*/)
        assert_equal expected, names.sort, "#{headers} #{accepted}"
      end
    end
    assert_includes answer_with("[200, PLAIN.merge('vary' => '*'), [TEXT]]", "gzip").all("vary").join(","), "*"
  end

  def test_an_etag_is_weak_where_the_bytes_are_others
    { "'\"a\"'" => 'W/"a"', "'W/\"a\"'" => 'W/"a"' }.each do |etag, expected|
      assert_equal expected, answer_with("[200, PLAIN.merge('etag' => #{etag}), [TEXT]]", "gzip")["etag"]
    end
    assert_equal '"a"', answer_with("[200, PLAIN.merge('etag' => '\"a\"'), [TEXT]]", "identity")["etag"]
    assert_nil answer_with("[200, PLAIN, [TEXT]]", "gzip")["etag"]
  end

  def test_the_length_that_the_application_tells_is_replaced
    each_coding do |coding|
      ["[TEXT]", "TEXT.lines.each", "[TEXT].each"].each do |body|
        answer = answer_with("[200, PLAIN.merge('content-length' => TEXT.bytesize.to_s), #{body}]", coding)
        assert_equal TEXT, decode(coding, answer.body), body
        assert_equal [answer.body.bytesize.to_s], [answer["content-length"] || answer.body.bytesize.to_s]
      end
    end
  end

  def test_head_has_the_fields_of_get
    ["[TEXT]", "TEXT.lines.each"].each do |body|
      code = "[200, PLAIN.merge('etag' => '\"a\"'), #{body}]"
      get = answer_with(code, "gzip")
      head = @client.request("HEAD", "/", { "x-code" => code, "accept-encoding" => "gzip" }).answer(to: "HEAD")

      assert_equal [200, ""], [head.status, head.body]
      %w[vary etag content-type].each { |name| assert_equal [get[name]], [head[name]], "#{name} of #{body}" }
      assert_includes [nil, get["content-length"]], head["content-length"], body
    end
  end

  def test_every_status_with_content_is_compressed
    [200, 201, 404, 422, 500].each do |status|
      answer = answer_with("[#{status}, PLAIN, [TEXT]]", "gzip")
      assert_equal [status, "gzip", TEXT], [answer.status, answer["content-encoding"], decode("gzip", answer.body)]
    end
  end

  def test_every_type_that_is_text
    ["text/html; charset=utf-8", "application/json", "application/vnd.api+json", "image/svg+xml", "TEXT/CSS", "application/javascript",
     "text/javascript", "application/xml", "application/manifest+json"].each do |type|
      assert_equal "gzip", answer_with("[200, { 'content-type' => '#{type}' }, [TEXT]]", "gzip")["content-encoding"], type
    end
  end

  def test_the_operator_says_from_which_size_on_and_which_types
    client = connect(serving("--compress", "--compress-min-bytes", "100", "--compress-types", "image/png", "--compress-types", "application/*"))

    { "[200, { 'content-type' => 'image/png' }, ['x' * 100]]" => "gzip", "[200, { 'content-type' => 'image/png' }, ['x' * 99]]" => nil,
      "[200, { 'content-type' => 'application/pdf' }, [TEXT]]" => "gzip", "[200, PLAIN, [TEXT]]" => nil }.each do |code, coding|
      assert_equal [coding], [client.get("/", "x-code" => code, "accept-encoding" => "gzip")["content-encoding"]], code
    end
  end

  def test_nothing_is_compressed_unless_the_operator_says_so
    answer = connect(serving).get("/", "x-code" => "[200, PLAIN, [TEXT]]", "accept-encoding" => "gzip")

    assert_equal [TEXT, nil, nil], [answer.body, answer["content-encoding"], answer["vary"]]
  end

  def test_static_files_are_sent_as_they_are
    answer = get(serve_public({ "page.txt" => TEXT }, "--compress"), "/page.txt", "accept-encoding" => "gzip")

    assert_file TEXT, answer
    assert_equal [nil, TEXT.bytesize.to_s], [answer["content-encoding"], answer["content-length"]]
    assert_match(/\A"/, answer["etag"])
  end

  def test_many_on_one_connection_keep_their_order
    head = "GET / HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n"
    @client.write(Array.new(50) { |number| "#{head}x-code: [200, PLAIN, ['text #{number} ' * 500]]\r\n\r\n" }.join)

    50.times { |number| assert_equal "text #{number} " * 500, decode("gzip", @client.answer.body) }
  end

  private

  def serving(*arguments)
    serve_folder({}, *arguments, app: <<~RUBY)
      PLAIN = { "content-type" => "text/plain" }.freeze
      TEXT = Array.new(2000) { |number| "line \#{number} of what is to be compressed\n" }.join.freeze
      run ->(env) { eval(env["HTTP_X_CODE"]) }
    RUBY
  end

  # Yields the codings that this machine can decode.
  def each_coding(&block) = CODINGS.select { |coding| decodable?(coding) }.each(&block)

  def answer_with(code, accepted) = @client.get("/", "x-code" => code, "accept-encoding" => accepted)
end
