# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/http_client"

# redirect_to_https and hsts, with a real listener for each scheme.
class HttpsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured
  include Fairlead::Test::HttpClients

  APP = <<~RUBY
    run ->(env) do
      own = env["PATH_INFO"] == "/own" ? { "strict-transport-security" => "max-age=0" } : {}
      [200, own, ["served"]]
    end
  RUBY

  HSTS = "strict-transport-security"

  def test_requests_without_tls_are_sent_to_the_listener_with_it
    server = serve_tls(APP, "-b", "tcp://127.0.0.1:0", "--redirect-to-https", "--priority-paths", "/up", "--hsts", "60")
    secure, plain = server.ports
    client = adopt(TCPSocket.new("127.0.0.1", plain))
    answer = client.get("/a?b=c", { "host" => "shop.example:#{plain}" })

    assert_equal [301, "https://shop.example:#{secure}/a?b=c"], [answer.status, answer["location"]]
    assert_nil answer[HSTS]
    assert_equal "served", client.get("/up").body
    assert_equal "served", client.get("/.well-known/acme-challenge/x").body
    posted = client.request("POST", "/form", { "content-length" => "1000000" }).answer

    assert_equal [308, "https://localhost:#{secure}/form", "close"], [posted.status, posted["location"], posted["connection"]]
    assert_predicate client, :closed?
    assert_equal %w[max-age=60 max-age=0], ["/", "/own"].map { |path| hsts(secure, path) }
    assert_equal "served", tls_get(secure, "/")
  end

  def test_behind_a_proxy_its_word_counts
    server = serve(APP, "--trusted-proxies", "127.0.0.1", "--redirect-to-https", "--hsts", "max-age=31536000; includeSubDomains; preload")
    client = connect(server)
    secure = client.get("/", { "x-forwarded-proto" => "https" })
    redirect = client.get("/", { "x-forwarded-proto" => "http", "x-forwarded-host" => "shop.example:80", "host" => "app:3000" })

    assert_equal ["served", "max-age=31536000; includeSubDomains; preload"], [secure.body, secure[HSTS]]
    assert_equal ["https://shop.example/", nil], [redirect["location"], redirect[HSTS]]
  end

  def test_a_port_can_be_named_and_forged_fields_lead_nowhere
    server = serve(APP, "--redirect-to-https=8443", "-C", "-", files: { "public/file.txt" => "file" })
    forged = { "host" => "shop.example", "x-forwarded-host" => "evil.example", "x-forwarded-proto" => "https", "forwarded" => "host=evil.example" }

    assert_equal "https://shop.example:8443//evil.example", get(server, "//evil.example", forged)["location"]
    assert_equal 400, get(server, "/", { "host" => "evil.example/@shop.example" }).status
    assert_equal 400, connect(server).write("GET / HTTP/1.0\r\n\r\n").answer.status
  end

  private

  def hsts(port, path)
    socket = tls_socket(port)
    socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    socket.read[/^#{HSTS}: (.*)\r$/, 1]
  ensure
    socket&.close
  end
end
