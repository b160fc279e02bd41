# frozen_string_literal: true

require "test_helper"
require "support/byte_ranges"
require "support/file_serving"

# `app.js.br`, `app.js.zst` and `app.js.gz` beside `app.js`: the server sends the best one that the client accepts, if that
# file may be served itself (RFC 9110 §8.4, §12.5.3). The siblings in these tests are not real encodings, because only the
# selection is under test.
class SiblingsTest < Minitest::Test
  include Fairlead::Test::FileServing

  FILES = { "app.js" => "plain", "app.js.br" => "brotli", "app.js.zst" => "zstandard", "app.js.gz" => "gzip" }.freeze
  CODINGS = { "br" => "brotli", "zstd" => "zstandard", "gzip" => "gzip" }.freeze

  # accept-encoding => content-encoding of the response.
  CHOICES = {
    "br" => "br", "zstd" => "zstd", "gzip" => "gzip", "x-gzip" => "gzip", "GZip" => "gzip",
    "gzip, deflate, br, zstd" => "br", "gzip, deflate, br" => "br", "gzip, zstd" => "zstd", "gzip,br" => "br",
    "gzip;q=1.0, br;q=0.5" => "gzip", "br;q=0.1, zstd;q=0.2, gzip;q=0.3" => "gzip", "br;q=0.9, zstd;q=0.91" => "zstd",
    "*" => "br", "*;q=0.5" => "br", "*;q=0.5, identity" => nil, "br;q=0, *" => "zstd", "*;q=0, gzip" => "gzip", "identity;q=0, gzip;q=0.1" => "gzip",
    "identity;q=0.5, gzip;q=0.5" => "gzip", "identity, gzip;q=0.5" => nil, "gzip;q=0.001, identity;q=0" => "gzip",
    "gzip;q=0" => nil, "br;q=0, zstd;q=0.0, gzip;q=0.000" => nil, "identity" => nil, "deflate" => nil, "" => nil, "gzipped" => nil,
    "br ; q=1" => "br", "gzip;Q=1" => "gzip"
  }.freeze

  def test_the_best_that_the_client_accepts
    client = connect(serve_public(FILES))

    assert_encoded nil, client.get("/app.js"), "without the field"
    CHOICES.each { |accepted, coding| assert_encoded coding, client.get("/app.js", "accept-encoding" => accepted), accepted.inspect }
  end

  def test_only_the_siblings_that_there_are
    client = connect(serve_public(FILES.slice("app.js", "app.js.gz")))

    assert_encoded "gzip", client.get("/app.js", "accept-encoding" => "br, zstd, gzip;q=0.1, identity;q=0.1")
    assert_encoded nil, client.get("/app.js", "accept-encoding" => "br, zstd")
  end

  def test_a_sibling_has_its_own_etag_and_the_type_of_the_original
    client = connect(serve_public(FILES))
    answers = [nil, *CODINGS.keys].map { |coding| client.get("/app.js", coding ? { "accept-encoding" => coding } : {}) }

    assert_equal 4, answers.map { |answer| answer["etag"] }.uniq.size
    answers.each do |answer|
      assert_equal ["text/javascript; charset=utf-8", "accept-encoding"], [answer["content-type"], answer["vary"]]
      assert_equal answer.body.bytesize.to_s, answer["content-length"]
      assert_match(/\A"[^"]+"\z/, answer["etag"])
      assert_equal "bytes", answer["accept-ranges"]
    end
  end

  def test_conditions_are_about_the_file_that_would_be_sent
    client = connect(serve_public(FILES))
    plain, gzip = [{}, { "accept-encoding" => "gzip" }].map { |fields| client.get("/app.js", fields)["etag"] }

    answer = client.get("/app.js", "accept-encoding" => "gzip", "if-none-match" => gzip)
    assert_equal [304, gzip, "accept-encoding"], [answer.status, answer["etag"], answer["vary"]]
    assert_encoded "gzip", client.get("/app.js", "accept-encoding" => "gzip", "if-none-match" => plain)
    assert_encoded nil, client.get("/app.js", "if-none-match" => gzip)
  end

  def test_ranges_are_about_the_file_that_is_sent
    client = connect(serve_public(FILES))
    answer = client.get("/app.js", "accept-encoding" => "gzip", "range" => "bytes=1-2")
    parts = Fairlead::Test::ByteRanges.parts(client.get("/app.js", "accept-encoding" => "br", "range" => "bytes=0-0,2-3"))

    assert_equal [206, "zi", "gzip", "bytes 1-2/4"], [answer.status, answer.body, answer["content-encoding"], answer["content-range"]]
    assert_equal %w[b ot], parts.map(&:text)
  end

  def test_head_says_what_get_would_send
    client = connect(serve_public(FILES))

    CODINGS.each do |coding, content|
      answer = client.request("HEAD", "/app.js", { "accept-encoding" => coding }).answer(to: "HEAD")
      assert_equal [coding, content.bytesize.to_s, ""], [answer["content-encoding"], answer["content-length"], answer.body]
    end
  end

  def test_one_that_is_older_than_the_original_is_ignored
    server = serve_public(FILES) do |one|
      age(one.path("public/app.js.br"), LONG_AGO - 1)
      age(one.path("public/app.js.gz"), LONG_AGO + 1)
    end

    assert_encoded "zstd", get(server, "/app.js", "accept-encoding" => "br, zstd;q=0.5, gzip;q=0.2, identity;q=0.1")
    server.write("public/app.js", "newer")
    answer = get(server, "/app.js", "accept-encoding" => "br, zstd, gzip")
    assert_equal ["newer", nil], [answer.body, answer["content-encoding"]]
  end

  def test_without_an_original_there_is_nothing
    client = connect(serve_public({ "gone.js.gz" => "gzip", "sub/index.html.gz" => "gzip" }))

    assert_from_app client.get("/gone.js", "accept-encoding" => "gzip")
    assert_from_app client.get("/sub/", "accept-encoding" => "gzip")
  end

  def test_one_that_is_asked_for_by_its_name_is_a_file_like_others
    client = connect(serve_public(FILES.merge("app.js.gz.gz" => "twice")))

    { "/app.js.br" => "brotli", "/app.js.zst" => "zstandard" }.each do |path, content|
      answer = client.get(path, "accept-encoding" => "gzip, br, zstd")
      assert_file content, answer, path
      assert_nil answer["content-encoding"]
    end
    assert_file "gzip", client.get("/app.js.gz")
  end

  def test_the_index_of_a_folder_has_siblings_too
    client = connect(serve_public({ "index.html" => "plain", "index.html.gz" => "gzip" }))

    assert_encoded "gzip", client.get("/", "accept-encoding" => "gzip")
  end

  def test_what_does_not_vary_has_no_siblings
    client = connect(serve_public({ "photo.png" => "plain", "photo.png.gz" => "gzip" }))
    answer = client.get("/photo.png", "accept-encoding" => "gzip")

    assert_file "plain", answer
    assert_equal [nil, nil], [answer["content-encoding"], answer["vary"]]
  end

  def test_the_sibling_of_a_hidden_file_is_hidden
    client = connect(serve_public(%w[.env.js .env.js.gz .git/app.js .git/app.js.gz].to_h { |name| [name, "secret"] }))

    %w[/.env.js /.env.js.gz /.git/app.js].each { |path| assert_from_app client.get(path, "accept-encoding" => "gzip"), path }
  end

  def test_a_sibling_that_would_not_be_served_itself_is_ignored
    originals = %w[app.js link.js fifo.js folder.js].to_h { |name| [name, "plain"] }
    server = serve_public({ **originals, "folder.js.gz/x" => "x" }) do |one|
      File.symlink(one.write("outside.gz", "CANARY"), one.path("public/link.js.gz"))
      File.symlink("nowhere", one.path("public/app.js.gz"))
      File.mkfifo(one.path("public/fifo.js.gz"))
    end
    client = connect(server)

    %w[app link fifo folder].each { |name| assert_encoded nil, client.get("/#{name}.js", "accept-encoding" => "gzip"), name }
  end

  def test_one_that_comes_and_goes
    client = connect(server = serve_public(FILES.slice("app.js")))
    gzip = { "accept-encoding" => "gzip" }
    assert_encoded nil, client.get("/app.js", gzip)

    server.write("public/app.js.gz", "gzip")
    wait_until("the sibling") { client.get("/app.js", gzip)["content-encoding"] == "gzip" }
    assert_encoded "gzip", client.get("/app.js", gzip)
    File.delete(server.path("public/app.js.gz"))
    wait_until("the original") { client.get("/app.js", gzip)["content-encoding"].nil? }
    assert_encoded nil, client.get("/app.js", gzip)
  end

  def test_large_siblings
    plain = noise(800_000)
    gzip = noise(700_000, seed: 9)
    client = connect(serve_public({ "app.js" => plain, "app.js.gz" => gzip }))

    assert_file gzip, client.get("/app.js", "accept-encoding" => "gzip")
    assert_file plain, client.get("/app.js")
  end

  private

  def assert_encoded(coding, answer, message = nil)
    assert_equal [200, coding, CODINGS.fetch(coding, "plain")], [answer.status, answer["content-encoding"], answer.body], message
    assert_equal "accept-encoding", answer["vary"], message
  end
end
