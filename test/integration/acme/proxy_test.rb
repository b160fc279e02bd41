# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"
require "support/hostile_authority"

# Requests to an authority through a proxy.
class AcmeProxyTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders

  Authority = Fairlead::Test::HostileAuthority

  def setup
    @authority = Authority.new
    @proxy = TCPServer.new("127.0.0.1", 0)
  end

  def teardown
    @thread&.kill&.join
    [@authority, @proxy].each(&:close)
  end

  def test_a_proxy_connects
    @thread = Thread.new { loop { tunnel(@proxy.accept) } }
    events = events_by(@authority.directory)

    assert_equal %w[account issued], events.map { |event| event[:event] }
    assert_match(%r{\ACONNECT 127.0.0.1:\d+ HTTP/1.1\r\n.*proxy-authorization: Basic eDp5\r\n}mi, @asked)
  end

  def test_a_proxy_that_refuses_is_a_problem
    @thread = Thread.new { @proxy.accept.tap { |client| client.gets("\r\n\r\n") && client.write("HTTP/1.1 403 no\r\n\r\n") }.close }
    event = events_by("https://ca.invalid/directory").first

    assert_equal "cannot reach ca.invalid:443: the proxy 127.0.0.1:#{@proxy.addr[1]} has refused to connect", event[:message]
  end

  def test_a_proxy_that_says_too_much_is_a_problem
    @thread = Thread.new do
      client = @proxy.accept
      loop { client.write("x" * 10_000) }
    rescue SystemCallError
      client.close
    end

    assert_match(/the response of the proxy is too long/, events_by("https://ca.invalid/directory").first[:message])
  end

  private

  def tunnel(client)
    @asked = client.gets("\r\n\r\n")
    server = TCPSocket.new("127.0.0.1", Integer(@asked[/:(\d+) /, 1], 10))
    client.write("HTTP/1.1 200 ok\r\n\r\n")
    [[client, server], [server, client]].each { |from, to| Thread.new { IO.copy_stream(from, to) && to.close_write } }
  end

  def events_by(directory)
    order = order("a.example", directory: directory, ca: @authority.ca)
    in_folder do |folder|
      account = Fairlead::Acme::Account.new(order, Fairlead::Acme::Store.new(folder))
      input = Fairlead::Acme::Authority.new(order, account).input("order", csr: Fairlead::Acme::SigningRequest.new(order.hosts).to_der)
      proxy = { host: "127.0.0.1", port: @proxy.addr[1], authorization: "Basic eDp5" }
      [].tap { |events| Fairlead::Acme::Program.new("fairlead: acme").run(input.merge(proxy: proxy)) { |event| events << event } }
    end
  end
end
