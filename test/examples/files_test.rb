# frozen_string_literal: true

require "test_helper"
require "net/http"

# Files that examples/files sends, and the clients that may get them.
class FilesTest < Minitest::Test
  include Fairlead::Test::Servers

  def setup
    @server = serve(nil, "--dir", File.join(ROOT, "examples/files"))
  end

  def test_who_has_a_link_gets_the_report
    links = get("/").body.scan(/href="(reports[^"]*)"/).flatten

    refute_empty links
    links.each do |link|
      answer = get("/#{link}")
      assert_equal %w[200 attachment], [answer.code, answer["content-disposition"]]
      assert_match(/\Amonth,orders$/, answer.body)
      assert_equal "304", get("/#{link}", "if-none-match" => answer["etag"]).code
    end
  end

  def test_who_has_none_does_not
    link = get("/").body[/href="(reports[^"]*)"/, 1]

    ["/#{link}0", "/#{link.chop}", "/#{link[/\A[^?]*/]}"].each { |path| assert_equal "403", get(path).code, path }
    ["/internal/first%20quarter%202025.csv", "/reports/", "/reports.rb"].each { |path| assert_missing get(path) }
  end

  def test_the_folder_comes_first
    style = get("/").body[/href="([^"]*\.css)"/, 1]

    assert_equal ["200", "public, max-age=31536000, immutable"], get(style).then { |answer| [answer.code, answer["cache-control"]] }
  end

  private

  def assert_missing(answer)
    assert_equal ["404", "text/html; charset=utf-8"], [answer.code, answer["content-type"]]
    assert_includes answer.body, "Nothing here"
  end

  def get(path, fields = {})
    Net::HTTP.start("127.0.0.1", @server.port) { |http| http.get(path, fields) }
  end
end
