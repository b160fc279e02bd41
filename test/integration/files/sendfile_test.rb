# frozen_string_literal: true

require "test_helper"
require "support/byte_ranges"
require "support/file_serving"

# `x-sendfile` and `x-accel-redirect`: the application names a file, and the server sends it, but only from a configured
# folder.
class SendfileTest < Minitest::Test
  include Fairlead::Test::FileServing

  ROOTS = ["--sendfile-root", "files", "--sendfile-root", "/internal/=accel"].freeze
  FILES = {
    "files/page.txt" => "page of files", "files/sub/ä b.pdf" => "umlaut", "files/large.bin" => Random.new(7).bytes(3_000_000),
    "files/empty.txt" => "",
    "accel/a b.pdf" => "spaced", "accel/sub/page.txt" => "page of accel", "accel/100%.txt" => "percent",
    "files-secret/page.txt" => "CANARY", "outside.txt" => "CANARY"
  }.freeze

  # Each request contains the code of its response; a body notes when it is read and when it is closed.
  SETUP = <<~RUBY
    class Body
      def each
        Notes.add("each")
        yield "body of the application"
      end

      def close = Notes.add("close")
    end
  RUBY

  def setup
    @client = connect(@server = serving(*ROOTS))
  end

  def test_the_named_file_is_sent_with_everything_that_a_file_has
    answer = sendfile(path("files/page.txt"))

    assert_equal [200, "page of files"], [answer.status, answer.body]
    assert_equal ["13", "text/plain; charset=utf-8"], [answer["content-length"], answer["content-type"]]
    assert_equal [LONG_AGO_HTTP, "bytes"], [answer["last-modified"], answer["accept-ranges"]]
    assert_match(/\A"[^"]+"\z/, answer["etag"])
    assert_equal ["close"], wait_for_notes(@server, 1), "the body is closed and never read"
  end

  def test_the_name_of_the_field_in_any_spelling
    %w[x-sendfile X-Sendfile X-SendFile X-SENDFILE].each do |name|
      answer = answer_with({ name => path("files/page.txt") })
      assert_equal [200, "page of files"], [answer.status, answer.body], name
      assert_not_told answer
    end
  end

  def test_names_are_taken_as_they_are
    assert_equal "umlaut", sendfile(path("files/sub/ä b.pdf")).body
    assert_equal 404, sendfile(path("files/sub/%C3%A4%20b.pdf")).status
  end

  def test_a_redirect_to_a_prefix_is_decoded_once
    { "/internal/a%20b.pdf" => "spaced", "/internal/sub/page.txt" => "page of accel", "/internal/100%25.txt" => "percent",
      "/internal/%61%20b.pdf" => "spaced" }.each do |target, content|
      answer = answer_with({ "x-accel-redirect" => target })
      assert_equal [200, content], [answer.status, answer.body], target
      assert_not_told answer
    end
  end

  def test_ranges_and_conditions_are_the_servers_business
    etag = sendfile(path("files/large.bin"))["etag"]
    content = FILES["files/large.bin"]

    answer = sendfile(path("files/large.bin"), fields: { "range" => "bytes=5-2000004" })
    assert_equal [206, content[5..2_000_004], "bytes 5-2000004/3000000"], [answer.status, answer.body, answer["content-range"]]
    parts = Fairlead::Test::ByteRanges.parts(sendfile(path("files/large.bin"), fields: { "range" => "bytes=0-9,-10" }))
    assert_equal [content[0..9], content[-10..]], parts.map(&:text)
    { { "if-none-match" => etag } => 304, { "if-modified-since" => LONG_AGO_HTTP } => 304, { "if-match" => '"x"' } => 412,
      { "range" => "bytes=3000000-" } => 416, { "range" => "bytes=0-1", "if-range" => '"x"' } => 200 }.each do |fields, status|
      assert_equal status, sendfile(path("files/large.bin"), fields: fields).status, fields
    end
    assert_equal "page of files", sendfile(path("files/page.txt")).body
  end

  def test_what_the_application_says_of_the_file_counts
    date = "Mon, 01 Jan 2018 00:00:00 GMT"
    own = { "content-type" => "application/x-own", "etag" => '"own"', "last-modified" => date, "cache-control" => "private",
            "content-disposition" => 'attachment; filename="x"', "set-cookie" => "a=b" }
    answer = sendfile(path("files/page.txt"), headers: own)

    assert_equal "page of files", answer.body
    own.each { |name, value| assert_equal [value], answer.all(name), name }
    { { "if-none-match" => '"own"' } => 304, { "if-modified-since" => date } => 304, { "range" => "bytes=0-0", "if-range" => '"own"' } => 206,
      { "range" => "bytes=0-0", "if-range" => date } => 206, { "if-match" => '"other"' } => 412 }.each do |fields, status|
      assert_equal status, sendfile(path("files/page.txt"), headers: own, fields: fields).status, fields
    end
  end

  def test_values_of_every_kind
    file = path("files/page.txt")

    assert_equal "page of files", answer_with({ "x-sendfile" => [file] }).body
    assert_equal "page of accel", answer_with({ "x-accel-redirect" => "/internal/sub/page.txt?not=this" }).body
    assert_equal "body of the application", answer_with({ "x-sendfile" => nil }).body
    assert_missing({ "x-sendfile" => [file, "/etc/passwd"] })
  end

  def test_what_is_encoded_stays_so
    @server.write("files/page.txt.gz", "gzip")
    encoded = { "content-type" => "text/plain", "content-encoding" => "gzip" }
    answer = sendfile(path("files/page.txt.gz"), headers: encoded)
    assert_equal [200, "gzip", "gzip", "text/plain"], [answer.status, answer.body, answer["content-encoding"], answer["content-type"]]

    client = connect(serving(*ROOTS, "--compress", "--compress-min-bytes", "1"))
    name = @servers.last.path("files/page.txt")
    answer = answer_with({ "x-sendfile" => name, "content-type" => "text/plain" }, fields: { "accept-encoding" => "gzip" }, client: client)
    assert_equal ["page of files", nil], [answer.body, answer["content-encoding"]]
  end

  # For example, Rack::Chunked frames every body.
  def test_the_framing_that_the_application_chose_is_not_the_files
    answer = sendfile(path("files/page.txt"), headers: { "transfer-encoding" => "chunked" })

    assert_equal [200, "page of files"], [answer.status, answer.body]
  end

  def test_the_length_that_the_application_tells_is_not_the_files
    %w[0 5 100000].each do |length|
      answer = sendfile(path("files/page.txt"), headers: { "content-length" => length })
      assert_equal [200, "page of files"], [answer.status, answer.body]
    end
  end

  def test_a_status_other_than_200_is_kept_and_the_file_is_whole
    [201, 404, 403, 503].each do |status|
      answer = sendfile(path("files/page.txt"), status: status, fields: { "range" => "bytes=0-1", "if-none-match" => "*" })
      assert_equal [status, "page of files", nil], [answer.status, answer.body, answer["content-range"]]
      assert_not_told answer
    end
  end

  def test_head
    ["files/page.txt", "files/large.bin", "files/empty.txt"].each do |name|
      whole = sendfile(path(name))
      answer = sendfile(path(name), method: "HEAD")
      assert_equal [200, ""], [answer.status, answer.body]
      %w[content-length content-type etag last-modified accept-ranges].each { |field| assert_equal [whole[field]], [answer[field]], field }
    end
  end

  def test_an_answer_to_post_is_the_whole_file
    answer = sendfile(path("files/page.txt"), method: "POST", fields: { "range" => "bytes=0-1" })

    assert_equal [200, "page of files"], [answer.status, answer.body]
  end

  def test_what_is_outside_or_missing_is_404_and_one_line_of_the_log
    File.symlink(path("outside.txt"), path("files/link.txt"))
    File.mkfifo(path("files/fifo"))
    %w[outside.txt files-secret/page.txt files/../outside.txt files/missing.txt files/link.txt files/fifo files/sub files files/
       files/page.txt/ files//page.txt files/./page.txt files/sub/../../outside.txt].each do |name|
      assert_missing({ "x-sendfile" => path(name) })
    end
    ["page.txt", "../outside.txt", "/etc/passwd", "", "/", "/internal/sub/page.txt", "files/page.txt"].each do |name|
      assert_missing({ "x-sendfile" => name })
    end
  end

  def test_a_redirect_does_not_leave_its_folder
    %w[/internal/../outside.txt /internal/%2e%2e/outside.txt /internal/..%2foutside.txt /internal/%2e%2e%2foutside.txt /internal/sub/../../outside.txt
       /internal/missing.txt /internal/ /internal /internalsub/page.txt /other/page.txt internal/sub/page.txt //internal/sub/page.txt
       /internal//sub/page.txt /internal/sub%00/page.txt /internal/%zz /internal/%252e%252e/outside.txt /internal/..;/outside.txt
       http://localhost/internal/sub/page.txt].each { |target| assert_missing({ "x-accel-redirect" => target }) }
  end

  def test_a_missing_file_has_the_page_of_the_public_folder
    server = serving(*ROOTS, "--public", "public", files: { "public/404.html" => "<p>none</p>" })
    answer = answer_with({ "x-sendfile" => "/nowhere", "content-type" => "application/pdf" }, client: connect(server))

    assert_equal [404, "<p>none</p>", "text/html; charset=utf-8"], [answer.status, answer.body, answer["content-type"]]
  end

  def test_without_roots_the_fields_are_for_a_proxy
    client = connect(serving)

    { "x-sendfile" => path("files/page.txt"), "x-accel-redirect" => "/internal/sub/page.txt" }.each do |name, value|
      answer = answer_with({ name => value }, client: client)
      assert_equal [200, "body of the application", value], [answer.status, answer.body, answer[name]]
    end
  end

  def test_the_application_is_told_whether_it_may
    code = "[200, {}, [env['sendfile.type'].inspect]]"

    assert_equal "\"X-Sendfile\"", @client.get("/", "x-code" => code).body
    assert_equal "nil", connect(serving).get("/", "x-code" => code).body
  end

  def test_what_comes_after_an_answer_comes_after_this_one_too
    code = "env['rack.after_reply'] << -> { Notes.add('reply') }; " \
           "env['rack.response_finished'] << ->(_, status, _, error) { Notes.add([status, error].inspect) }; "

    ["files/page.txt", "files/large.bin"].each_with_index do |name, index|
      assert_equal FILES[name], @client.get("/", "x-code" => code + "[200, { 'x-sendfile' => #{path(name).inspect} }, Body.new]").body
      assert_equal ["close", "reply", "[200, nil]"] * (index + 1), wait_for_notes(@server, 3 * (index + 1))
    end
  end

  def test_a_slow_client_holds_no_thread
    server = serving(*ROOTS, "-t", "1")
    large = noise(20_000_000)
    server.write("files/huge.bin", large)
    slow = narrow_client(server).request("GET", "/", { "x-code" => code_of({ "x-sendfile" => server.path("files/huge.bin") }) })
    assert slow.readable?(20)

    5.times { assert_equal "ok", connect(server).get("/", "x-code" => "[200, {}, ['ok']]").body }
    assert_equal large, slow.answer.body
  end

  def test_many_at_once_on_one_connection
    names = ["files/page.txt", "files/empty.txt", "files/large.bin", "files/sub/ä b.pdf"] * 10
    requests = names.map { |name| "GET / HTTP/1.1\r\nhost: a\r\nx-code: #{code_of({ "x-sendfile" => path(name) })}\r\n\r\n" }
    @client.write(requests.join)

    names.each { |name| assert_equal FILES[name].b, @client.answer.body, name }
  end

  private

  def serving(*arguments, files: {})
    serve_folder(FILES.merge(files), *arguments, app: unlinted("eval(env['HTTP_X_CODE'].dup.force_encoding('UTF-8'))", setup: SETUP))
  end

  def path(name) = File.join(@server.directory, name)

  def code_of(headers, status = 200) = "[#{status}, #{headers.inspect}, Body.new]"

  def answer_with(headers, status: 200, method: "GET", fields: {}, client: @client)
    client.request(method, "/", { "x-code" => code_of(headers, status) }.merge(fields)).answer(to: method)
  end

  def sendfile(name, headers: {}, **options) = answer_with({ "x-sendfile" => name }.merge(headers), **options)

  def assert_not_told(answer)
    assert_empty(answer.fields.select { |name, value| name.start_with?("x-sendfile", "x-accel") || value.include?(@server.directory) })
  end

  # Asserts a 404 without the application's body, and one line in the log.
  def assert_missing(headers)
    lines = @server.stderr.lines.size
    answer = answer_with(headers)
    assert_equal 404, answer.status, headers
    refute_match(/CANARY|root:|page of|body of/, answer.body, headers)
    assert_not_told answer
    wait_until("the log of #{headers}") { @server.stderr.lines.size > lines }
    assert_equal 200, @client.get("/", "x-code" => "[200, {}, ['ok']]").status
    assert_equal lines + 1, @server.stderr.lines.size, headers
  end
end
