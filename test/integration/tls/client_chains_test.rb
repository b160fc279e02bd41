# frozen_string_literal: true

require "test_helper"
require "json"
require "support/certificates"
require "support/client_chains"

# Valid and invalid chains of client certificates, and revocation lists, each compared with OpenSSL's decision.
class ClientChainsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  DOCUMENT = File.join(Fairlead::Test::ServerProcess::ROOT, "docs/guides/tls.md")

  # Cases in which OpenSSL decides differently => our decision. docs/guides/tls.md explains each.
  DIFFERENCES = {
    "only the intermediate is trusted" => true,
    "only the intermediate is trusted, and the root is sent" => true,
    "only the intermediate is trusted, with lists" => true,
    "two authorities of one name without key identifiers, the present key" => true,
    "a cross certificate of an unknown root comes first" => true,
    "7 intermediates" => false,
    "9 certificates, most of them idle" => false,
    "a client of version 1" => false,
    "a certificate of an authority" => false,
    "a client that signs itself, is trusted and an authority" => false,
    "an authority with RSA of 1,024 bits" => false,
    "an authority with P-521" => false,
    "a client with P-521" => false,
    "a signature with SHA-1" => false,
    "a signature with SHA-512" => false,
    "an issuer's name in another kind of string" => false,
    "an issuer's name in another case" => false,
    "an alternative name email that is permitted" => false,
    "an alternative name URI that is permitted" => false,
    "a subject that is permitted" => false,
    "an intermediate for no others, with one of its own name" => false,
    "lists of one date: clean, revoked" => false,
    "lists of one date: clean, revoked, clean" => false,
    "a list signed with SHA-1" => false
  }.freeze

  APP = <<~RUBY
    require "json"
    run ->(env) { [200, {}, [JSON.generate(env.select { |name, _| name.start_with?("SSL_CLIENT_") })]] }
  RUBY

  def test_each_verdict_is_that_of_openssl_or_explained
    cases = Fairlead::Test::ClientChains.new.to_a
    server = serve_cases(cases)
    wrong = cases.zip(server.ports).filter_map { |one, port| problem(one, port) }

    assert_operator cases.size, :>=, 400
    assert_empty wrong.join("\n")
    DIFFERENCES.each_key { |name| assert_includes File.read(DOCUMENT), "#{name} |" }
  end

  private

  def serve_cases(cases)
    files = certificate_files
    addresses = cases.each_with_index.map do |one, index|
      files["#{index}.pem"] = one.ca.map(&:pem).join
      files["#{index}.crl"] = one.crl.join if one.crl
      ssl_address(verify_mode: "peer", ca: "#{index}.pem", **(one.crl ? { crl: "#{index}.crl" } : {}))
    end
    serve(APP, *addresses.flat_map { |address| ["-b", address] }, files: files, bind: nil)
  end

  def problem(one, port)
    env = ask(one, port)
    verdict = env["SSL_CLIENT_VERIFY"] == "SUCCESS"
    if verdict != DIFFERENCES.fetch(one.name) { one.openssl.nil? }
      "#{one.name}: #{env} (OpenSSL: #{one.openssl || "accepted"})"
    elsif verdict && env != named(one)
      "#{one.name}: #{env} instead of #{named(one)}"
    end
  end

  # Returns the client's data in the env, or the alert.
  def ask(one, port)
    context = OpenSSL::SSL::SSLContext.new
    context.security_level = 0
    context.verify_mode = OpenSSL::SSL::VERIFY_NONE
    context.add_certificate(one.client.certificate, one.client.key, one.sent.drop(1).map(&:certificate))
    socket = connect_tls(context, port, "localhost", nil)
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    JSON.parse(socket.read[/\{.*\}/]).slice("SSL_CLIENT_VERIFY", "SSL_CLIENT_S_DN", "SSL_CLIENT_I_DN")
  rescue OpenSSL::SSL::SSLError, SystemCallError => e
    { "error" => e.message }
  ensure
    socket&.close
  end

  def named(one)
    text = ->(name) { name.to_s(OpenSSL::X509::Name::RFC2253) }
    { "SSL_CLIENT_VERIFY" => "SUCCESS", "SSL_CLIENT_S_DN" => text.call(one.client.subject),
      "SSL_CLIENT_I_DN" => text.call(one.client.certificate.issuer) }
  end
end
