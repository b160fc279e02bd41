# frozen_string_literal: true

require "test_helper"
require "support/file_serving"

# Time for which browsers may cache a static file: forever if its name contains a version, otherwise as configured.
class CacheControlTest < Minitest::Test
  include Fairlead::Test::FileServing

  FOR_EVER = "public, max-age=31536000, immutable"

  FINGERPRINTED = %w[
    application-0a1b2c3d.css app.0a1b2c3d4e5f6071.js assets/logo-0123456789abcdef0123456789abcdef01234567.png main-D3ADBEEF.js
    app-0a1b2c3d.min.js chunk.a2345678.js.map a/b/c/font-0000000f.woff2
    assets/index-B1x_y-Z9.js assets/index-CDEF1234.css
  ].freeze

  ORDINARY = %w[
    index.html app.js app-0a1b2c3.css app-0a1b2c3g.css 0a1b2c3d.js a0a1b2c3d.js application-stylesheet.css d3adbeef/app.js
    release-20240229/notes.txt report-20240229.html chunk.12345678.js index-B1x_y-Z9.js assets/index-B1x_y-Z.js assets/page-settings.js
  ].freeze

  def test_a_name_with_a_fingerprint_is_kept_for_ever
    client = connect(serve_public(FINGERPRINTED.to_h { |name| [name, name] }))

    FINGERPRINTED.each { |name| assert_equal FOR_EVER, client.get("/#{name}")["cache-control"], name }
  end

  def test_anything_else_is_asked_for_anew
    client = connect(serve_public(ORDINARY.to_h { |name| [name, name] }))

    ORDINARY.each { |name| assert_equal "no-cache", client.get("/#{name}")["cache-control"], name }
    assert_equal "no-cache", client.get("/")["cache-control"]
  end

  def test_the_first_rule_that_matches_counts
    files = %w[fonts/a.woff2 fonts/deep/b.woff2 page.html pages.html app-0a1b2c3d.js index.html ä/a.txt].to_h { |name| [name, name] }
    rules = ["/fonts/deep/*: private", "/fonts/*: public, max-age=604800", "/page?.html: no-store", "*.js: max-age=1", "/ä/*: max-age=2"]
    client = connect(serve_public(files, *rules.flat_map { |rule| ["--public-cache-control", rule] }))

    { "/fonts/a.woff2" => "public, max-age=604800", "/fonts/deep/b.woff2" => "private", "/pages.html" => "no-store", "/page.html" => "no-cache",
      "/app-0a1b2c3d.js" => "max-age=1", "/%c3%a4/a.txt" => "max-age=2", "/index.html" => "no-cache" }.each do |path, value|
      assert_equal value, client.get(path)["cache-control"], path
    end
  end

  def test_a_rule_cannot_be_evaded_by_another_spelling
    client = connect(serve_public({ "private/a.txt" => "a" }, "--public-cache-control", "/private/*: no-store"))

    ["/private/a.txt", "/%70rivate/a.txt", "/privat%65/a.tx%74", "/private/a.txt?x"].each do |path|
      assert_equal "no-store", client.get(path)["cache-control"], path
    end
    ["//private/a.txt", "/private%2fa.txt", "/./private/a.txt"].each { |path| assert_from_app client.get(path), path }
  end

  def test_rules_of_the_configuration_file
    settings = "public 'public'\npublic_cache_control '/a*: max-age=5'\npublic_cache_control '*: max-age=6'\n"
    client = connect(serve_folder({ "public/a.txt" => "a", "public/b.txt" => "b", "some.rb" => settings }, "-C", "some.rb"))

    assert_equal(%w[max-age=5 max-age=6], %w[/a.txt /b.txt].map { |path| client.get(path)["cache-control"] })
  end

  # A shared cache may keep any response that allows it, and would then serve the error to other clients.
  def test_an_error_is_not_kept_like_the_file
    client = connect(serve_public({ "app-0a1b2c3d.js" => "app", "app-0a1b2c3d.json" => "app" }, "--public-cache-control", "*.json: max-age=60"))

    %w[/app-0a1b2c3d.js /app-0a1b2c3d.json].product([{ "range" => "bytes=9-" }, { "if-match" => '"other"' }]).each do |path, fields|
      answer = client.get(path, fields)
      assert_includes [416, 412], answer.status
      assert_includes [nil, "no-store", "no-cache"], answer["cache-control"], "#{path} #{fields}"
    end
  end

  def test_every_answer_about_the_file_has_it
    client = connect(serve_public({ "app-0a1b2c3d.js" => "app" }))
    etag = client.get("/app-0a1b2c3d.js")["etag"]

    { 304 => { "if-none-match" => etag }, 206 => { "range" => "bytes=0-0" } }.each do |status, fields|
      assert_equal [status, FOR_EVER], client.get("/app-0a1b2c3d.js", fields).then { |answer| [answer.status, answer["cache-control"]] }
    end
    assert_equal FOR_EVER, client.request("HEAD", "/app-0a1b2c3d.js").answer(to: "HEAD")["cache-control"]
  end
end
