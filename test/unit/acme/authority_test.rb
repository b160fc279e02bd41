# frozen_string_literal: true

require "test_helper"
require "json"
require "support/acme_orders"

class AcmeAuthorityTest < Minitest::Test
  include Fairlead::Test::AcmeOrders

  # A missing account.
  class Account
    def to_h = nil
  end

  def test_the_program_gets_what_it_needs_and_no_key_of_a_certificate
    request = Fairlead::Acme::SigningRequest.new(%w[a.example b.example])
    input = input(order("a.example", "b.example", contact: "admin@a.example", eab_kid: "kid", eab_hmac: "_-8"), csr: request.to_der)

    assert_equal [%w[a.example b.example], ["mailto:admin@a.example"]], input.values_at(:hosts, :contact)
    assert_equal({ kid: "kid", key: [255, 239] }, input[:external_account])
    assert_equal "DNS:a.example, DNS:b.example", names(OpenSSL::X509::Request.new(input[:csr].pack("C*")))
    refute_includes JSON.generate(input), JSON.generate(request.key.private_to_der.bytes)[1..-2]
  end

  def test_a_proxy_of_the_environment_is_used_unless_the_authority_is_excepted
    { { "https_proxy" => "http://ann:p%40ss@proxy.example:3128" } => { host: "proxy.example", port: 3128, authorization: "Basic YW5uOnBAc3M=" },
      { "https_proxy" => "proxy.example:3128" } => { host: "proxy.example", port: 3128, authorization: nil },
      { "https_proxy" => "127.0.0.1:3128" } => { host: "127.0.0.1", port: 3128, authorization: nil },
      { "http_proxy" => "http://[::1]:3128" } => { host: "::1", port: 3128, authorization: nil },
      { "https_proxy" => "http://proxy.example:3128", "no_proxy" => "ca.example" } => nil,
      {} => nil }.each do |variables, proxy|
      found = with_environment(variables) { input(order("a.example", directory: "https://ca.example/dir"))[:proxy] }

      assert_equal [proxy], [found], variables
    end
  end

  private

  def input(order, **keywords) = Fairlead::Acme::Authority.new(order, Account.new).input("order", **keywords)

  def names(request)
    sequence = request.attributes.find { |attribute| attribute.oid == "extReq" }.value.value.first
    OpenSSL::X509::Extension.new(sequence.value.first).value
  end

  def with_environment(variables)
    names = %w[https_proxy http_proxy no_proxy HTTPS_PROXY HTTP_PROXY NO_PROXY]
    before = names.to_h { |name| [name, ENV.delete(name)] }
    ENV.update(variables)
    yield
  ensure
    ENV.update(before)
  end
end
