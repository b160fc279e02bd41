# frozen_string_literal: true

require "test_helper"
require "support/file_serving"

# `404.html` and similar pages in the public folder: the body of the server's own errors, and of the application's errors
# without a body.
class ErrorPagesTest < Minitest::Test
  include Fairlead::Test::FileServing

  PAGES = [400, 404, 413, 431, 500, 503].to_h { |status| ["#{status}.html", "<p>page of #{status}</p>"] }.freeze

  # Each request contains the code of its response.
  APP = "require 'rack'\nrun ->(env) { eval(env['HTTP_X_CODE'] || '[200, {}, [\"ok\"]]') }"

  def test_a_refused_request_gets_the_page_of_its_status
    server = serving("--body-max-bytes", "1000", "--head-max-fields", "10")

    { 400 => "GET / HTTP/1.1\r\n\r\n", 413 => "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1001\r\n\r\n",
      431 => "GET / HTTP/1.1\r\nhost: a\r\n#{"x: y\r\n" * 11}\r\n" }.each do |status, request|
      client = connect(server).write(request)
      answer = client.answer
      assert_page status, answer
      assert_equal "close", answer["connection"]
      assert_predicate client, :closed?
    end
  end

  def test_a_status_without_a_page_has_the_text_of_the_server
    answer = connect(serving).write("GET / HTTP/1.1\r\nhost: a\r\nexpect: x\r\n\r\n").answer

    assert_equal [417, "Expectation Failed\n", "text/plain"], [answer.status, answer.body, answer["content-type"]]
  end

  def test_an_application_that_raises
    client = connect(serving("-e", "production"))

    assert_page 500, answer_to(client, "raise 'no'")
    assert_page 500, answer_to(client, "nil")
    assert_page 500, answer_to(client, "[200, {}, Enumerator.new { |_| raise 'no' }]")
    assert_equal "ok", client.get.body
  end

  def test_in_development_the_exception_is_told_instead
    assert_match(/RuntimeError: the message/, answer_to(connect(serving("-e", "development")), "raise 'the message'").body)
  end

  def test_an_answer_without_type_and_body
    client = connect(serving)

    ["[404, {}, []]", "[404, { 'content-length' => '0' }, []]", "[503, {}, ['']]", "[404, {}, ['', '']]",
     "[404, {}, Rack::BodyProxy.new([]) { nil }]", "[404, {}, [].each]"].each do |code|
      assert_page Integer(code[/\d+/], 10), answer_to(client, code), code
    end
    assert_equal "ok", client.get.body
  end

  def test_the_other_fields_of_the_application_stay
    answer = answer_to(connect(serving), "[404, { 'x-cascade' => 'pass', 'set-cookie' => 'a=b', 'cache-control' => 'no-store' }, []]")

    assert_page 404, answer
    assert_equal %w[pass a=b no-store], %w[x-cascade set-cookie cache-control].map { |name| answer[name] }
  end

  def test_an_application_with_something_to_say_says_it
    client = connect(serving)

    { "[404, {}, ['mine']]" => "mine", "[404, { 'content-type' => 'text/plain' }, []]" => "", "[404, {}, ['mine'].each]" => "mine",
      "[404, {}, ['', 'mine']]" => "mine", "[500, { 'Content-Type' => 'text/html' }, ['mine']]" => "mine", "[200, {}, []]" => "",
      "[418, {}, []]" => "", "[404, {}, ->(stream) { stream.write('mine'); stream.close }]" => "mine" }.each do |code, body|
      assert_equal body, answer_to(client, code).body, code
    end
  end

  def test_head_has_the_head_of_the_page_only
    client = connect(serving("-e", "production"))

    { 404 => "[404, {}, []]", 500 => "raise 'no'" }.each do |status, code|
      answer = client.request("HEAD", "/", { "x-code" => code }).answer(to: "HEAD")
      assert_equal [status, "", "text/html; charset=utf-8"], [answer.status, answer.body, answer["content-type"]]
      assert_includes [nil, PAGES["#{status}.html"].bytesize.to_s], answer["content-length"]
    end
    assert_equal "ok", client.get.body
  end

  def test_a_body_that_is_replaced_is_closed
    server = serving
    body = "Class.new { def each = nil; def close = File.write('closed', 'yes') }.new"

    assert_page 404, answer_to(connect(server), "[404, {}, #{body}]")
    wait_until("the body to be closed") { File.exist?(server.path("closed")) }
  end

  def test_a_page_is_also_a_file
    client = connect(serving)

    assert_file PAGES["404.html"], client.get("/404.html")
    assert_equal 206, client.get("/404.html", "range" => "bytes=0-1").status
  end

  def test_conditions_and_ranges_do_not_concern_a_page
    client = connect(serving)

    [{ "if-none-match" => "*" }, { "range" => "bytes=0-1" }, { "if-match" => '"x"' }].each do |fields|
      assert_page 404, client.get("/", fields.merge("x-code" => "[404, {}, []]")), fields
    end
  end

  def test_only_real_pages_at_the_top_of_the_folder
    server = serve_public({ "sub/404.html" => "sub", "200.html" => "never", "399.html" => "never", "600.html" => "never", "4040.html" => "never",
                            "405.htm" => "never", "410.html/x" => "never" }, app: APP) do |one|
      File.mkfifo(one.path("public/501.html"))
      File.symlink(one.write("outside", "CANARY"), one.path("public/502.html"))
    end
    client = connect(server)

    [404, 200, 399, 405, 410, 501, 502].each { |status| assert_equal "", answer_to(client, "[#{status}, {}, []]").body, status }
  end

  def test_every_worker_has_them
    server = serving("-w", "2", "-e", "production")

    10.times { assert_page 500, answer_to(connect(server), "raise 'no'") }
  end

  private

  def serving(*arguments) = serve_public(PAGES, *arguments, app: APP)

  def answer_to(client, code) = client.get("/", "x-code" => code)

  def assert_page(status, answer, message = nil)
    page = PAGES.fetch("#{status}.html")
    assert_equal [status, page, page.bytesize.to_s], [answer.status, answer.body, answer["content-length"]], message
    assert_equal "text/html; charset=utf-8", answer["content-type"], message
  end
end
