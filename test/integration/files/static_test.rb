# frozen_string_literal: true

require "test_helper"
require "time"
require "support/file_serving"

# The files of the public folder, as browsers see them: content, type, index, redirect.
class StaticTest < Minitest::Test
  include Fairlead::Test::FileServing

  # Name => expected content-type.
  TYPES = {
    "page.html" => "text/html; charset=utf-8", "page.htm" => "text/html; charset=utf-8", "style.css" => "text/css; charset=utf-8",
    "app.js" => "text/javascript; charset=utf-8", "module.mjs" => "text/javascript; charset=utf-8",
    "data.json" => "application/json; charset=utf-8", "notes.txt" => "text/plain; charset=utf-8",
    "feed.xml" => %r{\A(application|text)/xml; charset=utf-8\z}, "logo.svg" => "image/svg+xml; charset=utf-8",
    "photo.png" => "image/png", "photo.jpg" => "image/jpeg", "photo.jpeg" => "image/jpeg", "photo.gif" => "image/gif",
    "photo.webp" => "image/webp", "photo.avif" => "image/avif", "favicon.ico" => %r{\Aimage/(x-icon|vnd\.microsoft\.icon)\z},
    "font.woff2" => "font/woff2", "font.woff" => "font/woff", "paper.pdf" => "application/pdf", "module.wasm" => "application/wasm",
    "film.mp4" => "video/mp4", "film.webm" => "video/webm", "song.mp3" => "audio/mpeg", "archive.zip" => "application/zip",
    "PAGE.HTML" => "text/html; charset=utf-8", "a.b.css" => "text/css; charset=utf-8",
    "noextension" => "application/octet-stream", "strange.qqqq" => "application/octet-stream", "html" => "application/octet-stream"
  }.freeze

  def test_the_content_type_follows_from_the_name
    client = connect(serve_public(TYPES.keys.to_h { |name| [name, "<content of #{name}>"] }))

    TYPES.each do |name, type|
      answer = client.get("/#{name}")
      assert_file "<content of #{name}>", answer, name
      assert_operator type, :===, answer["content-type"], "#{name}: #{answer["content-type"]}"
    end
  end

  def test_every_field_that_caches_need_is_there
    answer = get(serve_public({ "page.html" => "hello" }), "/page.html")

    assert_equal %w[5 bytes], [answer["content-length"], answer["accept-ranges"]]
    assert_equal LONG_AGO_HTTP, answer["last-modified"]
    assert_match(/\A"[!#-~]+"\z/, answer["etag"])
    assert_in_delta Time.now, Time.httpdate(answer["date"]), 5
    assert_equal "no-cache", answer["cache-control"]
    assert_equal %w[accept-ranges cache-control content-length content-type date etag last-modified vary], answer.fields.map(&:first).sort
  end

  def test_only_what_may_be_encoded_varies
    client = connect(serve_public({ "page.html" => "hello", "logo.svg" => "<svg/>", "photo.png" => "png", "font.woff2" => "font" }))

    %w[page.html logo.svg].each { |name| assert_equal "accept-encoding", client.get("/#{name}")["vary"], name }
    %w[photo.png font.woff2].each { |name| assert_nil client.get("/#{name}")["vary"], name }
  end

  def test_head_is_get_without_the_content
    client = connect(serve_public({ "page.html" => "hello", "large.bin" => "x" * 300_000, "empty.txt" => "" }))

    %w[/page.html /large.bin /empty.txt].each do |path|
      expected = client.get(path)
      answer = client.request("HEAD", path).answer(to: "HEAD")
      assert_equal [200, ""], [answer.status, answer.body], path
      assert_equal(*[expected, answer].map { |one| one.fields.reject { |name, _| name == "date" } }, path)
    end
  end

  def test_content_of_every_size_and_kind_arrives_whole
    sizes = [0, 1, 4095, 4096, 65_535, 65_536, 65_537, 262_144, 1_000_003, 9_000_000]
    client = connect(serve_public(sizes.to_h { |size| ["#{size}.bin", noise(size)] }))

    2.times { sizes.each { |size| assert_file noise(size), client.get("/#{size}.bin"), size } }
  end

  def test_the_etag_tells_versions_apart
    server = serve_public({ "page.txt" => "hello" })
    etags = [LONG_AGO + 10, LONG_AGO + 10.000001, LONG_AGO + 11].map do |time|
      server.write("public/page.txt", "jello")
      age(server.path("public/page.txt"), time)
      2.times.map { get(server, "/page.txt")["etag"] }.uniq
    end

    assert_equal [1, 1, 1], etags.map(&:size)
    assert_equal etags, etags.uniq
  end

  # RFC 9110 §8.8.2.1: an origin never sends a modification time in the future.
  def test_a_file_from_the_future_or_from_before_all_times
    server = serve_public({ "future.txt" => "future", "past.txt" => "past" }) do |one|
      age(one.path("public/future.txt"), Time.now + 1_000_000)
      age(one.path("public/past.txt"), Time.at(-1_000_000))
    end

    { "/future.txt" => "future", "/past.txt" => "past" }.each do |path, content|
      answer = get(server, path)
      assert_file content, answer
      assert_operator Time.httpdate(answer["last-modified"]), :<=, Time.httpdate(answer["date"]), path if answer["last-modified"]
      assert_equal 304, get(server, path, "if-none-match" => answer["etag"]).status
    end
  end

  def test_a_folder_is_its_index
    client = connect(serve_public({ "index.html" => "home", "sub/index.html" => "sub", "a/b/c/index.html" => "deep" }))

    { "/" => "home", "/sub/" => "sub", "/a/b/c/" => "deep", "/index.html" => "home", "/sub/index.html" => "sub" }.each do |path, text|
      answer = client.get(path)
      assert_file text, answer, path
      assert_equal "text/html; charset=utf-8", answer["content-type"], path
    end
  end

  def test_an_index_that_is_a_folder_is_none
    client = connect(serve_public({ "index.html/x" => "x", "sub/index.html/index.html" => "deep" }))

    %w[/ /?a=b /sub /sub/].each { |path| assert_from_app client.get(path), path }
    assert_file "deep", client.get("/sub/index.html/")
  end

  def test_a_folder_without_its_slash_is_redirected_to_it
    client = connect(serve_public({ "sub/index.html" => "sub", "a b/ä/index.html" => "umlaut" }))

    { "/sub" => "/sub/", "/sub?a=b&c=%2f" => "/sub/?a=b&c=%2f", "/sub?" => %r{\A/sub/\??\z},
      "/a%20b/%C3%A4" => %r{\A/a%20b/%c3%a4/\z}i }.each do |path, location|
      answer = client.get(path)
      assert_equal 301, answer.status, path
      assert_operator location, :===, answer["location"], "#{path}: #{answer["location"]}"
      assert_equal 301, client.request("HEAD", path).answer(to: "HEAD").status, path
    end
    assert_file "umlaut", client.get("/a%20b/%C3%A4/")
  end

  def test_a_redirect_never_leads_to_another_host
    client = connect(serve_public({ "sub/index.html" => "sub", "evil.example/index.html" => "evil" }))

    ["//sub", "//evil.example", "/%2fevil.example", "/%5cevil.example", "/\\evil.example", "///evil.example", "//evil.example/..",
     "//evil.example/%2e%2e", "/.//evil.example", "http://localhost//evil.example", "/evil.example"].each do |path|
      answer = client.get(path)
      next assert_from_app(answer, path) unless answer.status == 301

      assert_equal "/evil.example/", answer["location"], path
      assert_equal "/evil.example", path
    end
  end

  def test_a_query_does_not_change_which_file_it_is
    client = connect(serve_public({ "page.html" => "page", "index.html" => "home", "what?.txt" => "never" }))

    ["/page.html?", "/page.html?v=1", "/page.html?/../../secret", "/page.html?%00", "/page.html?a?b"].each do |path|
      assert_file "page", client.get(path), path
    end
    assert_file "home", client.get("/?a=b")
    assert_from_app client.get("/what?.txt")
    assert_from_app client.get("/what%3f.txt")
  end

  def test_names_are_decoded_once
    files = { "a b.txt" => "space", "ä.txt" => "umlaut", "100%.txt" => "percent", "a+b.txt" => "plus", "a&b=c;d.txt" => "signs",
              "%41.txt" => "encoded" }
    client = connect(serve_public(files))

    { "/a%20b.txt" => "space", "/%c3%a4.txt" => "umlaut", "/%C3%A4.txt" => "umlaut", "/100%25.txt" => "percent", "/a+b.txt" => "plus",
      "/a%2Bb.txt" => "plus", "/a&b=c;d.txt" => "signs", "/%2541.txt" => "encoded", "/%61%20%62.%74xt" => "space" }.each do |path, text|
      assert_file text, client.get(path), path
    end
    ["/100%.txt", "/%41.txt", "/a%2541.txt", "/a%u0020b.txt"].each { |path| assert_from_app client.get(path), path }
  end

  def test_each_file_has_one_spelling
    client = connect(serve_public({ "page.html" => "page", "sub/page.html" => "sub", "sub/index.html" => "index" }))

    %w[/Page.html /PAGE.HTML /page.html/ //page.html /./page.html /sub/../page.html /sub//page.html /sub/./page.html /sub%2fpage.html
       /sub%5cpage.html /sub\\page.html /page.html. /page.html%20 /page.html%00 /page.html%0a /page.html::$DATA /page.html:a /sub// /sub/.
       /sub/./ /sub/index.html/ /.. /... /sub/..].each do |path|
      assert_from_app client.get(path), path
    end
  end

  def test_every_spelling_of_the_option
    files = { "public/page.html" => "page" }
    [["--public", "public"], ["--public-dir", "public"], ["-www", "public"], ["--public=public"]].each do |arguments|
      assert_file "page", get(serve_folder(files, *arguments), "/page.html"), arguments
    end
    ["public_dir 'public'", "public 'public'"].each do |line|
      assert_file "page", get(serve_folder({ "some.rb" => line, **files }, "-C", "some.rb"), "/page.html"), line
    end
    assert_from_app get(serve_folder(files), "/page.html")
  end
end
