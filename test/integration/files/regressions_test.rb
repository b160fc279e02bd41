# frozen_string_literal: true

require "test_helper"
require "support/content_codings"
require "support/file_serving"

# Responses with an unusual course: behind an interim response, with a thread that is called back, with a client that does
# not read.
class FilesRegressionsTest < Minitest::Test
  include Fairlead::Test::FileServing
  include Fairlead::Test::ContentCodings

  # The first part of the path selects the response.
  APP = <<~'RUBY'
    require "timeout"

    # Yields until it is interrupted.
    class Endless
      def each
        noise = Random.new(7)
        Timeout.timeout(0.5) { loop { yield noise.bytes(100_000) } }
      end
    end

    ANSWERS = {
      "missing" => [200, { "x-sendfile" => "/nowhere" }, []],
      "named" => [200, { "x-sendfile" => File.expand_path("files/page.txt") }, []],
      "nothing" => [404, {}, []],
      "encoded" => [404, { "content-encoding" => "gzip" }, []],
      "endless" => [200, { "content-type" => "text/plain" }, Endless.new],
      "huge" => [200, { "content-type" => "text/plain" }, [Random.new(7).bytes(30_000_000)]],
    }.freeze

    run lambda { |env|
      env["rack.early_hints"]&.call("link" => "</app.css>; rel=preload")
      status, headers, body = ANSWERS.fetch(env["PATH_INFO"].delete_prefix("/"))
      [status, headers.dup, body]
    }
  RUBY

  FILES = { "public/404.html" => "page of 404", "files/page.txt" => "page of files" }.freeze

  def test_what_comes_after_an_interim_answer
    client = connect(serving("--early-hints"))

    { "/missing" => [404, "page of 404"], "/named" => [200, "page of files"], "/nothing" => [404, "page of 404"],
      "/404.html" => [200, "page of 404"] }.each do |path, expected|
      client.request("GET", path)
      assert_equal 103, client.answer.status unless path == "/404.html"
      answer = client.answer
      assert_equal expected, [answer.status, answer.body], path
    end
  end

  def test_no_page_stands_in_for_a_coded_body
    answer = connect(serving).get("/encoded")

    assert_equal [404, "gzip", ""], [answer.status, answer["content-encoding"], answer.body]
  end

  def test_a_thread_that_is_called_back_from_waiting_for_a_client
    server = serving("--compress", "--threads", "1:1", "--response-memory-bytes", "4096", "--response-disk-bytes", "0")
    %w[br gzip zstd identity].each do |coding|
      narrow_client(server).request("GET", "/endless", { "accept-encoding" => coding })

      assert_equal [404, "page of 404"], connect(server).get("/nothing").then { |answer| [answer.status, answer.body] }, coding
    end
    assert_equal 4, server.stderr.scan("Timeout::Error").size, server.stderr
  end

  def test_a_client_that_leaves_while_its_answer_is_compressed
    server = serving("--compress", "--threads", "1:1", "--response-memory-bytes", "4096", "--response-disk-bytes", "0")
    %w[br gzip zstd].each do |coding|
      client = narrow_client(server)
      client.request("GET", "/huge", { "accept-encoding" => coding })
      assert client.readable?(10)
      client.reset

      assert_equal 404, connect(server).get("/nothing").status, coding
    end
  end

  private

  def serving(*arguments)
    serve_folder(FILES, "--public", "public", "--sendfile-root", "files", *arguments, app: APP)
  end
end
