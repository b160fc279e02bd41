# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# A Sinatra application, unchanged: sessions, forms, redirects, streams, errors.
class SinatraTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = <<~RUBY
    require "sinatra/base"
    class Shop < Sinatra::Base
      set :environment, :production
      enable :sessions
      set :session_secret, "0123456789abcdef" * 8
      set :public_folder, File.expand_path("public")
      enable :static
      get("/") { "hello \#{params["name"]}" }
      get("/count") { (session[:count] = session[:count].to_i + 1).to_s }
      post("/form") { params["item"].values_at("name", "size").join(" ") }
      post("/upload") { "\#{params["file"]["filename"]} \#{params["file"]["tempfile"].size}" }
      get("/old") { redirect "/" }
      get("/stream") { stream { |out| 5.times { |n| out << n.to_s } } }
      get("/file") { send_file "public/page.html" }
      get("/raise") { raise "oops" }
    end
    run Shop
  RUBY

  def test_it_answers_as_the_framework_promises
    server = serve(APP, "-t", 2, files: { "public/page.html" => "<p>page</p>" })

    assert_equal "hello world", get(server, "/?name=world").body
    assert_equal "blue large", ask(server, "POST", "/form", FORM, "item[name]=blue&item[size]=large").body
    assert_equal [302, "http://localhost/"], get(server, "/old").then { |answer| [answer.status, answer["location"]] }
    assert_equal "01234", get(server, "/stream").body
    assert_equal "<p>page</p>", get(server, "/file").body
    assert_equal "<p>page</p>", get(server, "/page.html").body
    assert_equal([404, 500], ["/none", "/raise"].map { |path| get(server, path).status })
  end

  def test_a_session_is_kept_over_requests
    server = serve(APP)
    cookie = nil
    counts = Array.new(3) do
      answer = get(server, "/count", cookie ? { "cookie" => cookie } : {})
      cookie = answer["set-cookie"][/\A[^;]+/]
      answer.body
    end

    assert_equal %w[1 2 3], counts
  end

  def test_an_upload_arrives_whole
    server = serve(APP)
    body = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\ncontent-type: application/octet-stream\r\n\r\n" \
           "#{"x" * 700_000}\r\n--b--\r\n"

    assert_equal "a.bin 700000", ask(server, "POST", "/upload", { "content-type" => "multipart/form-data; boundary=b" }, body).body
  end

  FORM = { "content-type" => "application/x-www-form-urlencoded" }.freeze
end
