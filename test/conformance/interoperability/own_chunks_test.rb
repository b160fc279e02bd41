# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"
require_relative "proxies"

# Bodies that the application itself has chunked, through nginx with its default of HTTP/1.0 requests.
class OwnChunksBehindProxyTest < Minitest::Test
  include Fairlead::Test::HttpServing

  APP = <<~'RUBY'
    parts = env["PATH_INFO"] == "/whole" ? ["4\r\nWiki\r\n", "5\r\npedia\r\n", "0\r\n\r\n"] : ["4\r\nWiki\r\n"]
    [200, { "content-type" => "text/plain", "transfer-encoding" => "chunked" }, parts.each]
  RUBY

  def after_teardown
    @proxy&.stop
    super
  end

  def test_they_arrive_decoded
    start

    assert_equal ["Wikipedia", true], @proxy.curl("/whole")
  end

  def test_without_its_last_chunk_the_response_is_not_complete_for_the_client_either
    server = start

    refute @proxy.curl("/part").last
    server.wait_for_output(%r{its body has no last chunk; the response is aborted \(/part\)})
  end

  private

  def start
    skip "nginx is not installed" unless Proxy.program("nginx")
    server = serve(unlinted(APP))
    @proxy = Proxy.new(:plain_nginx, server.port)
    server
  end
end
