# frozen_string_literal: true

require "test_helper"
require "zlib"
require_relative "redbot"

# REDbot's report on each kind of response: files, missing files, and an application's compressed responses.
class RedbotTest < Minitest::Test
  include Fairlead::Test::Servers

  TEXT = "All work and no play makes Jack a dull boy.\n" * 200
  STYLE = "p { color: red }\n" * 200

  # A PNG of 32 by 32 random pixels, so that it is longer than the part that REDbot requests.
  IMAGE = [["IHDR", [32, 32, 8, 2, 0, 0, 0].pack("NNC5")],
           ["IDAT", Zlib.deflate(Array.new(32) { |row| "\0#{Random.new(row).bytes(96)}" }.join)],
           ["IEND", ""]].reduce("\x89PNG\r\n\x1A\n".b) do |image, (type, data)|
    image + [data.bytesize, type, data, Zlib.crc32(type + data)].pack("Na4a*N")
  end.freeze

  FILES = {
    "index.html" => "<!doctype html>\n<title>Boy</title>\n<p>#{TEXT}</p>\n",
    "site.css" => STYLE, "site.css.gz" => Zlib.gzip(STYLE),
    "noise.png" => IMAGE,
    "assets/app-0123456789abcdef.js" => "console.log('#{TEXT.tr("\n", " ")}')\n"
  }.freeze

  # The application handles conditions itself; /wrong has deliberate mistakes.
  APP = <<~RUBY.freeze
    require "rack"
    require "rack/lint"
    use Rack::Lint
    use Rack::ContentLength
    use Rack::ConditionalGet
    use Rack::ETag
    text = #{TEXT.inspect}
    run lambda { |env|
      case env["PATH_INFO"]
      when "/text" then [200, { "content-type" => "text/plain; charset=utf-8", "cache-control" => "no-cache" }, [text]]
      when "/wrong" then [200, { "content-type" => "text/plain", "etag" => "unquoted", "expires" => "tomorrow", "age" => "old" }, [text]]
      else [404, { "content-type" => "text/plain" }, ["There is nothing."]]
      end
    }
  RUBY

  # Path => status, and notes that REDbot must have.
  EXPECTED = {
    "/" => [200, %w[INM_304 IMS_304 RANGE_CORRECT CL_CORRECT]],
    "/site.css" => [200, %w[INM_304 IMS_304 RANGE_CORRECT CONNEG_GZIP_GOOD CL_CORRECT]],
    "/noise.png" => [200, %w[INM_304 IMS_304 RANGE_CORRECT CL_CORRECT]],
    "/assets/app-0123456789abcdef.js" => [200, %w[INM_304 IMS_304 RANGE_CORRECT CL_CORRECT]],
    "/missing.txt" => [404, %w[STATUS_NOT_FOUND]],
    "/text" => [200, %w[INM_304 CONNEG_GZIP_GOOD]]
  }.freeze

  # Negative notes that are not faults: path => { note => reason }.
  EXCUSED = {
    "/assets/app-0123456789abcdef.js" => {
      "STORE_PUBLIC_UNNECESSARY" => "`public` lets shared caches keep an answer to a request with Authorization (RFC 9111 §3.5)"
    }
  }.freeze

  EXPECTED.each do |path, (status, notes)|
    define_method("test_there_is_nothing_wrong_with_#{path}") do
      report = ask(path)

      assert_equal status, report.status
      assert_empty notes - report.ids, report.notes.join("\n")
      assert_equal EXCUSED.fetch(path, {}).keys, report.negative.map(&:id), report.negative.join("\n")
    end
  end

  def test_there_is_nothing_wrong_with_what_is_missing_without_an_application
    report = ask("/missing.txt", app: nil)

    assert_equal 404, report.status
    assert_includes report.ids, "STATUS_NOT_FOUND"
    assert_empty report.negative.join("\n")
  end

  def test_what_is_wrong_is_found
    report = ask("/wrong")

    assert_operator report.negative.size, :>, 2
    assert_includes report.negative.map(&:level), "BAD"
  end

  private

  def ask(path, app: APP)
    skip Redbot.unavailable if Redbot.unavailable

    Redbot.ask(server(app).url(path))
  end

  def server(app)
    launch(app, "--public", "public", "--compress") do |new|
      FILES.each do |path, content|
        path = new.write("public/#{path}", content)
        File.utime(Time.utc(2024, 2, 29, 12), Time.utc(2024, 2, 29, 12), path)
      end
      new.start
    end
  end
end
