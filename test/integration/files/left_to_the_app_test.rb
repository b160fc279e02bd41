# frozen_string_literal: true

require "test_helper"
require "support/file_serving"

# Requests that the public folder leaves to the application: other methods, bodies, upgrades, and misses. And the responses
# without an application.
class LeftToTheAppTest < Minitest::Test
  include Fairlead::Test::FileServing

  FILES = { "page.html" => "page", "index.html" => "home", "sub/other.html" => "other", "sub/deep/x.txt" => "x" }.freeze

  def test_what_is_not_there
    client = connect(serve_public(FILES))

    ["/missing", "/page", "/page.htm", "/sub/missing.html", "/page.html/more", "/sub/deep/x.txt/",
     "/#{"a" * 255}", "/#{"a" * 256}", "/#{"a/" * 3000}x", "/#{"%C3%A9" * 200}"].each do |path|
      assert_from_app client.get(path), path
    end
  end

  def test_a_folder_without_an_index_is_never_listed
    client = connect(serve_public(FILES))

    %w[/sub /sub/ /sub/deep /sub/deep/].each do |path|
      answer = client.get(path)
      assert_from_app answer, path
      assert_equal "GET #{path}", answer.body
    end
  end

  def test_the_application_sees_the_request_as_it_was
    client = connect(serve_public(FILES))

    ["/missing%20one", "/sub/", "/a//b", "/%2e%2e/x", "/.env"].each do |path|
      assert_equal "GET #{path}".gsub("%20", " ").gsub("%2e", "."), client.get(path).body.gsub("%20", " ").gsub("%2e", "."), path
    end
  end

  def test_other_methods
    server = serve_public(FILES)

    %w[POST PUT PATCH DELETE OPTIONS TRACE PROPFIND get].each do |method|
      answer = ask(server, method, "/page.html")
      assert_from_app answer, method
      assert_equal "#{method} /page.html", answer.body
    end
  end

  def test_requests_with_a_body
    client = connect(serve_public(FILES))

    %w[GET HEAD].each do |method|
      assert_from_app client.request(method, "/page.html", {}, body: "hello").answer(to: method), method
      client.request(method, "/page.html", { "transfer-encoding" => "chunked" }, body: "5\r\nhello\r\n0\r\n\r\n")
      assert_from_app client.answer(to: method), "#{method}, chunked"
    end
    assert_file "page", client.get("/page.html", "content-length" => "0")
  end

  def test_requests_that_want_to_become_something_else
    client = connect(serve_public(FILES))

    assert_from_app client.get("/page.html", UPGRADE)
    assert_from_app client.get("/", UPGRADE)
    assert_from_app client.get("/page.html", "accept" => "text/event-stream")
    assert_file "page", client.get("/page.html", "accept" => "text/html")
  end

  # An unknown upgrade must not prevent serving the file: Java's client offers HTTP/2 with every first request.
  def test_requests_that_offer_what_nobody_takes_up
    client = connect(serve_public(FILES))

    [{ "connection" => "Upgrade, HTTP2-Settings", "upgrade" => "h2c", "http2-settings" => "AAMAAABkAAQAAP__" },
     { "connection" => "upgrade", "upgrade" => "TLS/1.0" }, { "connection" => "upgrade" }, { "upgrade" => "websocket" },
     UPGRADE.merge("sec-websocket-version" => "8"), { "accept" => "text/event-stream-not" }].each do |fields|
      assert_file "page", client.get("/page.html", fields), fields
    end
  end

  def test_a_web_socket_may_have_the_path_of_a_file
    server = serve_public(FILES, app: <<~RUBY)
      run lambda { |env|
        env["rack.upgrade"] = Class.new { def self.on_open(client) = client.close } if env["rack.upgrade?"] == :websocket
        [200, {}, []]
      }
    RUBY

    assert_equal 101, connect(server).request("GET", "/page.html", UPGRADE).answer.status
  end

  def test_without_an_application_the_folder_is_served_alone
    server = serve_public(FILES, app: nil)
    client = connect(server)

    assert_file "page", client.get("/page.html")
    assert_file "home", client.get("/")
    %w[/missing /sub/ /.env /../config.ru /page.html/].each { |path| assert_equal 404, client.get(path).status, path }
    assert_equal [404, ""], client.request("HEAD", "/missing").answer(to: "HEAD").then { |answer| [answer.status, answer.body] }
    assert_operator 400..499, :cover?, ask(server, "POST", "/page.html", {}, "a").status
  end

  def test_without_an_application_the_folder_has_its_own_page_for_what_is_missing
    client = connect(serve_public(FILES.merge("404.html" => "<p>not here</p>"), app: nil))
    answer = client.get("/missing")

    assert_equal [404, "<p>not here</p>", "text/html; charset=utf-8"], [answer.status, answer.body, answer["content-type"]]
    assert_equal "15", client.request("HEAD", "/missing").answer(to: "HEAD")["content-length"]
  end

  def test_a_folder_that_is_missing_is_a_mistake_that_is_told
    server = launch(APP, "--public", "nowhere")

    refute_predicate server.wait_exit, :success?
    assert_match(/nowhere/, server.stderr)
  end
end
