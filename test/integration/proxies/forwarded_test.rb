# frozen_string_literal: true

require "test_helper"
require "json"
require "support/http_client"

# Fields about the client, its scheme, host and port: from trusted proxies, and from others.
class ForwardedTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  KEYS = %w[REMOTE_ADDR rack.url_scheme SERVER_NAME SERVER_PORT HTTP_HOST].freeze
  APP = <<~RUBY.freeze
    require "json"
    run ->(env) { [200, {}, [JSON.generate(env.values_at(*%w[#{KEYS.join(" ")}]))]] }
  RUBY

  # Values without such fields.
  PLAIN = %w[127.0.0.1 http app.internal 3000 app.internal:3000].freeze

  # Every field that has a meaning if a proxy sends it.
  FIELDS = {
    "x-forwarded-for" => "192.0.2.1", "x-forwarded-proto" => "https", "x-forwarded-scheme" => "https", "x-forwarded-ssl" => "on",
    "x-forwarded-host" => "evil.example:6", "x-forwarded-port" => "6", "forwarded" => "for=192.0.2.1;proto=https;host=evil.example",
    "x-real-ip" => "192.0.2.1", "client-ip" => "192.0.2.1", "true-client-ip" => "192.0.2.1", "cf-connecting-ip" => "192.0.2.1",
    "x-client-ip" => "192.0.2.1", "via" => "1.1 proxy", "https" => "on", "front-end-https" => "on", "x-url-scheme" => "https"
  }.freeze

  def test_from_others_no_field_changes_anything
    [[], %w[--trusted-proxies 10.0.0.0/8], %w[--trusted-proxies unix],
     %w[--trusted-proxies 10.0.0.0/8 --remote-address header:X-Real-IP]].each do |options|
      server = serve(APP, *options)
      client = connect(server)
      [*FIELDS.map { |name, value| { name => value } }, FIELDS, { "forwarded" => "for=\"" }].each do |fields|
        assert_equal PLAIN, seen(client, fields), [options, fields].inspect
      end
    end
  end

  # Fields of a request through one proxy, and through two => env of the application.
  CHAINS = {
    {} => PLAIN,
    { "x-forwarded-for" => "192.0.2.1", "x-forwarded-proto" => "https" } => %w[192.0.2.1 https app.internal 3000 app.internal:3000],
    { "x-forwarded-for" => "6.6.6.6, 192.0.2.1, 10.0.0.1", "x-forwarded-proto" => "ftp, https, http", "x-forwarded-host" => "shop.example",
      "x-forwarded-port" => "8443" } => %w[192.0.2.1 https shop.example 8443 app.internal:3000],
    { "x-forwarded-host" => "shop.example", "x-forwarded-proto" => "https" } => %w[127.0.0.1 https shop.example 443 app.internal:3000],
    { "x-forwarded-host" => "[2001:db8::1]:81" } => %w[127.0.0.1 http [2001:db8::1] 81 app.internal:3000],
    { "forwarded" => "for=6.6.6.6;proto=http, for=\"[2001:db8::7]:80\";proto=https;host=\"shop.example:1\", for=10.0.0.1;proto=http" } =>
      %w[2001:db8::7 https shop.example 1 app.internal:3000],
    { "forwarded" => "for=_hidden;proto=https" } => %w[127.0.0.1 https app.internal 3000 app.internal:3000]
  }.freeze

  def test_trusted_proxies_are_believed_as_far_as_they_reach
    server = serve(APP, "--trusted-proxies", "127.0.0.1", "--trusted-proxies", "10.0.0.0/8", "--trusted-proxies", "unix",
                   "-b", "tcp://127.0.0.1:0", "-b", "unix://app.sock")
    [connect(server), adopt(UNIXSocket.new(server.path("app.sock")))].each do |client|
      CHAINS.to_a.cycle(3) { |fields, expected| assert_equal expected, seen(client, fields), fields.inspect } # so that envs come from shapes
    end
  end

  def test_contradictions_are_refused_unless_one_kind_of_fields_is_chosen
    both = { "x-forwarded-for" => "192.0.2.1", "forwarded" => "for=192.0.2.2" }
    expected = { "all" => nil, "x_forwarded" => "192.0.2.1", "forwarded" => "192.0.2.2" }
    expected.each do |kind, address|
      server = serve(APP, "--trusted-proxies", "127.0.0.1", "--forwarded-fields", kind)
      next assert_equal address, seen(connect(server), both).first if address

      assert_equal 400, get(server, "/", both).status
      assert_equal 400, get(server, "/", { "forwarded" => "for=\"6.6.6.6, for=192.0.2.1" }).status
      assert_logged(/refused 400 \(contradictory forwarded fields\) from 127\.0\.0\.1:\d+$/, server)
      assert_logged(/refused 400 \(invalid forwarded field\)/, server)
    end
  end

  def test_a_field_of_ones_own_follows_the_same_rule
    server = serve(APP, "--trusted-proxies", "127.0.0.1", "--trusted-proxies", "10.0.0.0/8", "--remote-address", "header:X-Client")

    assert_equal "192.0.2.1", seen(connect(server), "x-client" => "6.6.6.6, 192.0.2.1, 10.0.0.1", "x-forwarded-for" => "7.7.7.7").first
  end

  def test_the_logs_have_both_addresses
    format = '%h %a %{c}a %{c}h "%r"'
    server = serve(APP, "--trusted-proxies", "127.0.0.1", "--access-log", "access.log", "--access-log-format", format)
    client = connect(server)
    seen(client, "x-forwarded-for" => "192.0.2.1:4000")
    client.request("POST", "/", { "x-forwarded-for" => "192.0.2.1:4000", "transfer-encoding" => "chunked" }, body: "nonsense\r\n")

    assert_equal 400, client.answer.status
    lines = wait_until("two lines") { (lines = File.readlines(server.path("access.log"), chomp: true)).size == 2 && lines }
    assert_equal ['192.0.2.1 192.0.2.1 127.0.0.1 127.0.0.1 "GET / HTTP/1.1"', '192.0.2.1 192.0.2.1 127.0.0.1 127.0.0.1 "- - -"'], lines
    assert_logged(/refused 400 \(invalid chunk size\) from 192\.0\.2\.1:4000 via 127\.0\.0\.1:\d+$/, server)
  end

  private

  def seen(client, fields)
    JSON.parse(client.get("/", { "host" => "app.internal:3000" }.merge(fields)).body)
  end
end
