# frozen_string_literal: true

require "test_helper"
require "support/acme_servers"

# Pebble with other faults than in the other tests.
class PebbleFaultsTest < Minitest::Test
  include Fairlead::Test::AcmeServers

  def teardown
    @authority&.stop
    super
  end

  # Every third valid nonce is refused. The hosts of the second order are authorized since the first one, so there is no
  # challenge.
  def test_refused_nonces_and_authorizations_that_are_used_again
    authority = start("PEBBLE_WFE_NONCEREJECT" => "30", "PEBBLE_AUTHZREUSE" => "100")
    server = with_acme("again.example", authority: authority)
    server.wait_for_output(/is valid until/, seconds: 60)
    first = certificate(server, "again.example").serial
    server.stop
    lead_nowhere(authority)
    File.unlink(pem_file(server, "again.example"))
    server.launch
    wait_until("another certificate", seconds: 60) { File.file?(pem_file(server, "again.example")) }

    refute_equal first, certificate(server, "again.example").serial
  end

  def test_an_authority_that_looks_at_nothing
    server = with_acme("blind.example", authority: start("PEBBLE_VA_ALWAYS_VALID" => "1"), found: false)
    server.wait_for_output(/is valid until/, seconds: 60)

    assert_equal %w[blind.example], hosts_of(certificate(server, "blind.example"))
  end

  private

  def start(environment) = @authority = Fairlead::Test::Pebble.new(environment: environment).start
end
