# frozen_string_literal: true

require "test_helper"
require "support/file_serving"

# Conditional requests for static files (RFC 9110 §13), from caches and editors.
class FileConditionsTest < Minitest::Test
  include Fairlead::Test::FileServing

  EARLIER = "Thu, 29 Feb 2024 11:59:59 GMT"
  LATER = "Thu, 29 Feb 2024 12:00:01 GMT"

  def setup
    @client = connect(@server = serve_public({ "page.html" => "page", "large.bin" => noise(300_000) }))
    @etag = @client.get("/page.html")["etag"]
  end

  def test_what_the_client_has_is_not_sent_again
    [@etag, "W/#{@etag}", "*", "\"other\", #{@etag}", "\"other\",#{@etag} , \"more\"", "\"a,b\", #{@etag}"].each do |value|
      assert_status 304, "if-none-match" => value
    end
    ['"other"', 'W/"other"', @etag.delete('"'), "\"#{@etag}\"", ""].each { |value| assert_status 200, "if-none-match" => value }
  end

  def test_not_modified_has_the_fields_of_the_file_and_no_content
    [{ "if-none-match" => @etag }, { "if-modified-since" => LONG_AGO_HTTP }].each do |fields|
      answer = get_page(fields)
      assert_equal [304, ""], [answer.status, answer.body]
      assert_equal [@etag, "no-cache", "accept-encoding"], %w[etag cache-control vary].map { |name| answer[name] }
      assert_nil answer["content-type"]
      assert_includes [nil, "4"], answer["content-length"]
      assert answer["date"]
    end
  end

  def test_a_date_that_is_not_older_will_do
    [LONG_AGO_HTTP, LATER, "Thursday, 29-Feb-24 12:00:00 GMT", "Thu Feb 29 12:00:00 2024"].each do |date|
      assert_status 304, "if-modified-since" => date
    end
    [EARLIER, "yesterday", "", "Thu, 30 Feb 2024 12:00:00 GMT", "#{LONG_AGO_HTTP} x"].each do |date|
      assert_status 200, "if-modified-since" => date
    end
  end

  def test_the_etag_counts_more_than_the_date
    assert_status 200, "if-none-match" => '"other"', "if-modified-since" => LATER
    assert_status 304, "if-none-match" => @etag, "if-modified-since" => EARLIER
    assert_status 200, "if-match" => @etag, "if-unmodified-since" => EARLIER
  end

  def test_a_precondition_that_fails_is_told
    [{ "if-match" => '"other"' }, { "if-match" => "W/#{@etag}" }, { "if-unmodified-since" => EARLIER }].each { |fields| assert_status 412, fields }
    [{ "if-match" => @etag }, { "if-match" => "*" }, { "if-match" => "\"other\", #{@etag}" }, { "if-unmodified-since" => LONG_AGO_HTTP },
     { "if-unmodified-since" => "never" }].each { |fields| assert_status 200, fields }
    assert_status 304, "if-match" => @etag, "if-none-match" => @etag
    assert_status 412, "if-match" => '"other"', "if-none-match" => @etag
  end

  def test_the_same_for_head
    { 304 => { "if-none-match" => @etag }, 412 => { "if-match" => '"other"' }, 200 => { "if-none-match" => '"other"' } }.each do |status, fields|
      answer = @client.request("HEAD", "/page.html", fields).answer(to: "HEAD")
      assert_equal [status, ""], [answer.status, answer.body]
    end
  end

  def test_a_list_may_have_several_lines
    @client.write("GET /page.html HTTP/1.1\r\nhost: a\r\nif-none-match: \"other\"\r\nif-none-match: #{@etag}\r\n\r\n")

    assert_equal 304, @client.answer.status
  end

  def test_a_large_file_that_the_client_has_is_not_sent_either
    etag = @client.get("/large.bin")["etag"]

    3.times { assert_equal [304, ""], @client.get("/large.bin", "if-none-match" => etag).then { |answer| [answer.status, answer.body] } }
    assert_file noise(300_000), @client.get("/large.bin", "if-none-match" => @etag)
  end

  def test_a_file_that_was_replaced_has_been_modified
    @server.write("public/page.html", "newer")
    age(@server.path("public/page.html"), LONG_AGO + 60)

    assert_file "newer", get_page("if-none-match" => @etag)
    assert_file "newer", get_page("if-modified-since" => LONG_AGO_HTTP)
    assert_status 412, "if-match" => @etag
  end

  def test_a_condition_on_a_redirect_or_a_miss_means_nothing
    @server.write("public/sub/index.html", "sub")

    assert_equal 301, @client.get("/sub", "if-none-match" => "*").status
    assert_from_app @client.get("/missing", "if-none-match" => "*")
    assert_from_app @client.get("/missing", "if-match" => '"x"')
  end

  private

  def get_page(fields) = @client.get("/page.html", fields)

  def assert_status(status, fields)
    answer = get_page(fields)
    assert_equal status, answer.status, fields
    assert_equal "page", answer.body, fields if status == 200
  end
end
