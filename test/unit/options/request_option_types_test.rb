# frozen_string_literal: true

require "test_helper"

class RequestOptionTypesTest < Minitest::Test
  Types = Fairlead::Options::Types

  # Given value => result; nil if it is refused.
  REMOTE_ADDRESSES = {
    :socket => "socket", "localhost" => "localhost", "192.0.2.1" => "192.0.2.1", "::1" => "::1", "2001:db8::1" => "2001:db8::1",
    { header: "X-Real-IP" } => "header:X-Real-IP", "header:X-Real-IP" => "header:X-Real-IP",
    { proxy_protocol: :v1 } => "proxy_protocol:v1", "proxy_protocol:v1" => "proxy_protocol:v1",
    { proxy_protocol: :v2 } => "proxy_protocol:v2", { proxy_protocol: "any" } => "proxy_protocol:any",
    { proxy_protocol: :v3 } => nil, { proxy_protocol: :none } => nil,
    { header: "" } => nil, { header: "X Real" } => nil, "header" => nil, "socket:" => nil,
    "localhost:1" => nil, "10.0.0.0/8" => nil, "[::1]" => nil, "fe80::1%eth0" => nil, "example.com" => nil, {} => nil, 7 => nil,
    { header: "X", proxy_protocol: :v1 } => nil
  }.freeze

  REDIRECTS = {
    true => true, "true" => true, false => false, "false" => false, 443 => 443, "8443" => 8443, 0 => nil, 65_536 => nil, "443x" => nil,
    "" => nil, "yes" => nil, 1.5 => nil
  }.freeze

  TOLD = {
    true => true, "true" => true, :trusted => :trusted, "trusted" => :trusted, "Trusted" => nil, "all" => nil, "" => nil, nil => nil, 1 => nil
  }.freeze

  RULES = {
    true => "max-age=31536000", 60 => "max-age=60", "60" => "max-age=60", 0 => "max-age=0",
    { max_age: 60 } => "max-age=60", { include_subdomains: true } => "max-age=31536000; includeSubDomains",
    { "max_age" => 63_072_000, "include_subdomains" => true, "preload" => true } => "max-age=63072000; includeSubDomains; preload",
    "max-age=60" => "max-age=60", "Max-Age=60;includesubdomains" => "max-age=60; includeSubDomains",
    "max-age=31536000; includeSubDomains; preload" => "max-age=31536000; includeSubDomains; preload",
    -1 => :invalid, "always" => :invalid, "" => :invalid, "max-age=60\r\nx: y" => :invalid, "max-age=60; preload" => :invalid,
    { max_age: "60" } => :invalid, { maxage: 60 } => :invalid, { include_subdomains: "no" } => :invalid, { max_age: nil } => :invalid,
    { max_age: 60, include_subdomains: true, preload: true } => :invalid, { preload: true } => :invalid, 1.5 => :invalid
  }.freeze

  NETWORKS = {
    "10.0.0.0/8" => true, "192.0.2.1" => true, "::/0" => true, "2001:db8::/32" => true, "unix" => true,
    "10.0.0.0/33" => false, "10.0.0.0/255.0.0.0" => false, "10.0.0" => false, "example.com" => false, "" => false, "/8" => false
  }.freeze

  PARTIES = {
    :connection => "connection", "ip" => "ip", :ip => "ip", "X-API-Key" => "x-api-key", "x api key" => nil, "" => nil, "x:" => nil,
    7 => nil, { header: "x" } => nil
  }.freeze

  PATHS = {
    "/up" => ["/up"], "/up, /ping" => ["/up", "/ping"], %w[/up /a%20b /up] => ["/up", "/a%20b"], "/" => ["/"], "none" => [],
    "up" => nil, "/up?full" => nil, "/a b" => nil, "/up#" => nil, "/u\np" => nil, "" => nil, [] => nil, [:up] => nil, 7 => nil
  }.freeze

  SHARES = {
    "all" => "all", "2xx=0.01, 404=.5" => "2xx=0.01,404=0.5", { "2xx" => 0.01, 304 => 0 } => "2xx=0.01,304=0.0",
    %w[2xx=1 3xx=0] => "2xx=1.0,3xx=0.0", "2xx=0.00000001" => "2xx=1.0e-08", "2xx" => nil, "2xx=1.1" => nil, "2xx=-1" => nil, "xx=1" => nil,
    "" => nil, [] => nil, {} => nil, 0.5 => nil, "2xx=nan" => nil, "all,2xx=1" => nil
  }.freeze

  def test_remote_addresses
    REMOTE_ADDRESSES.each { |given, expected| assert_parses(Types::RemoteAddress.new("SOURCE"), given, expected) }
    assert_equal "127.0.0.1", Types::RemoteAddress.new("SOURCE").to_engine("localhost")
  end

  def test_the_proxy_protocol_is_a_matter_of_listeners
    assert_equal "socket", Types::RemoteAddress.new("SOURCE").to_engine("proxy_protocol:v2")
  end

  def test_redirects
    REDIRECTS.each { |given, expected| assert_parses(Types::HttpsRedirect.new, given, expected) }
    assert_equal({ redirect_to_https: true }, Fairlead::Options[:redirect_to_https].expand)
  end

  def test_clients_that_are_told_times
    type = Types::ServerTiming.new
    TOLD.each { |given, expected| assert_parses(type, given, expected) }
    assert_equal({ server_timing: true }, Fairlead::Options[:server_timing].expand)
  end

  def test_rules_for_browsers
    type = Types::Hsts.new("RULE")
    RULES.each { |given, expected| assert_parses(type, given, (expected unless expected == :invalid)) }
    [false, "false", "none"].each { |none| assert_nil type.parse(none) }
  end

  def test_networks
    NETWORKS.each { |text, is_one| assert_parses(Types::Network.new("NETWORK"), text, (text if is_one)) }
  end

  def test_parties
    PARTIES.each { |given, expected| assert_parses(Types::FlowKey.new("WHOM"), given, expected) }
  end

  def test_paths
    PATHS.each { |given, expected| assert_parses(Types::Paths.new("LIST"), given, expected) }
  end

  def test_shares_by_status
    SHARES.each { |given, expected| assert_parses(Types::Shares.new("LIST"), given, expected) }
  end

  # The engine must accept every value that is valid here.
  def test_the_engine_takes_what_the_types_take
    given = { remote_address: REMOTE_ADDRESSES.compact.keys, trusted_proxies: NETWORKS.select { |_, is_one| is_one }.keys.map { |one| [one] } }
    given.update(fair_by: PARTIES.compact.keys, priority_paths: PATHS.compact.keys, access_log_sample: SHARES.compact.keys)
    given.update(redirect_to_https: REDIRECTS.compact.keys,
                 hsts: [false, *RULES.reject { |_, rule| rule == :invalid }.keys], forwarded_fields: %w[all x_forwarded forwarded],
                 server_timing: [false, *TOLD.compact.keys])
    given.each do |option, values|
      values.each { |value| make_engine(option => value) }
    end
  end

  def test_methods
    type = Types::Methods.new("LIST")
    { :any => [], "any" => [], "GET" => ["GET"], "GET, HEAD" => %w[GET HEAD], %w[GET PROPFIND GET] => %w[GET PROPFIND], [:GET] => ["GET"],
      "" => nil, [] => nil, "GET HEAD" => nil, 7 => nil, [7] => nil, "any,GET" => %w[any GET] }.each do |given, expected|
      assert_parses(type, given, expected)
    end
  end

  def test_several_methods_are_one_list
    assert_equal({ supported_http_methods: %w[GET HEAD] }, Fairlead::Options[:supported_http_methods].expand("GET", "HEAD"))
    assert_equal %w[GET HEAD], Fairlead::Configuration.from_options(supported_http_methods: %w[GET HEAD]).supported_http_methods
  end

  def test_a_callable_is_a_block_or_an_object_with_call
    type = Types::Callable.new
    block = ->(_error) {}

    assert_parses(type, block, block)
    assert_parses(type, "text", nil)
    assert_equal "a block (#{__FILE__}:#{block.source_location.last})", type.format(block)
    assert_equal "Object", type.format(Object.new)
  end

  private

  def assert_parses(type, given, expected)
    return assert_equal(expected, type.parse(given), given.inspect) unless expected.nil?

    assert_raises(Types::Invalid, given.inspect) { type.parse(given) }
  end

  def make_engine(options)
    configuration = Fairlead::Configuration.from_options({ bind: "tcp://127.0.0.1:0", **options })
    service = Fairlead::Service.new(configuration, log: Fairlead::EventLog.new(quiet: true)).open
    Fairlead::Native::Engine.new(->(_) {}, [], service.engine_settings, nil, 0) { nil }.stop
  ensure
    service&.close
  end
end
