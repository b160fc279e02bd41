# frozen_string_literal: true

require "test_helper"
require "net/http"
require "stringio"
require "time"
require "support/acme_servers"

# Certificates from a real authority (Pebble, which refuses every fifth valid nonce) with HTTP challenges on a plain
# listener.
class HttpChallengeTest < Minitest::Test
  include Fairlead::Test::AcmeServers

  def test_the_first_certificate_comes_by_itself_and_is_kept
    server = with_acme("shop.example,www.shop.example", arguments: ["-w", "2"], contact: "admin@shop.example")
    server.wait_for_output(/the certificate for shop.example, www.shop.example is valid until/)

    assert_equal %w[shop.example www.shop.example], hosts_of(certificate(server, "shop.example"))
    assert_modes(server)
    assert_empty Dir.glob(server.path("state/challenges/*/*"))
    assert_equal "the application", Net::HTTP.get("127.0.0.1", "/.well-known/acme-challenge/unknown", server.port)

    issued = pebble.issued
    server.stop
    again = own(server.again).start
    again.wait_for_output(/is valid until/)

    refute_match(/ordering/, again.stdout)
    assert_equal issued, pebble.issued
  end

  def test_an_authority_that_cannot_be_reached_is_asked_again_later_and_not_before
    front = pebble.front.target
    pebble.front.target = nil
    server = with_acme("later.example")
    server.wait_for_output(/there is no new certificate for later.example: cannot reach .*; next attempt at .* UTC; no certificate is in use/)
    server.stop
    pebble.front.target = front
    again = own(server.again).start
    again.wait_for_output(/the next attempt to get a certificate for later.example is at .* UTC, failed attempts: 1: cannot reach/)

    refute_match(/ordering/, again.stdout)

    lead_to(again)
    File.delete(failure_file(again, "later.example"))
    again.wait_for_output(/the certificate for later.example is valid until/)

    assert_empty failure_file(again, "later.example")
  ensure
    pebble.front.target = front
  end

  def test_an_authorization_that_is_refused_is_told_with_its_reason
    server = with_acme("refused.example", found: false)
    server.wait_for_output(/there is no new certificate for refused.example: refused.example: .+ \((?:connection|unauthorized)\); next attempt at/)

    assert_empty Dir.glob(server.path("state/challenges/*/*"))
    assert_equal 1, server.stderr.scan("no new certificate").size
  end

  # Neither clients nor the end of the server wait for the authority.
  def test_an_authority_that_never_answers_delays_nobody
    front = pebble.front.target
    silent = TCPServer.new("127.0.0.1", 0)
    pebble.front.target = silent.addr[1]
    server = with_acme("silent.example")
    server.wait_for_output(/ordering/)
    ordering = wait_until("the ordering process") { ordering_process(server, "silent.example") }

    assert_equal "the application", Net::HTTP.get("127.0.0.1", "/", server.port)
    assert_ends_before_its_timeout(server)
    wait_until("the end of the ordering process") { !File.exist?("/proc/#{ordering}") }
  ensure
    pebble.front.target = front
    silent&.close
  end

  # The process ignores signals that a service manager sends to all processes of a service, and ends with its server, even if
  # the server is killed.
  def test_the_process_that_orders_ends_with_its_server_and_not_before
    front = pebble.front.target
    silent = TCPServer.new("127.0.0.1", 0)
    pebble.front.target = silent.addr[1]
    server = with_acme("orphan.example", arguments: ["-w", "2"])
    ordering = wait_until("the ordering process") { ordering_process(server, "orphan.example") }
    wait_until("its connection") { silent.accept_nonblock(exception: false).is_a?(TCPSocket) }
    %i[TERM INT HUP].each { |signal| Process.kill(signal, ordering) }

    assert_equal "the application", Net::HTTP.get("127.0.0.1", "/", server.port)
    assert File.exist?("/proc/#{ordering}")
    server.signal(:KILL)
    wait_until("the end of the ordering process") { !File.exist?("/proc/#{ordering}") }
  ensure
    pebble.front.target = front
    silent&.close
  end

  # Both servers have the same first host and one folder.
  def test_two_servers_share_a_folder
    first = with_acme("shared.example")
    first.wait_for_output(/is valid until/)
    second = launch(APP, "--acme-dir", first.path("state"), "--acme", pebble.order("shared.example,other.example"))
    wait_until("the second server") { second.addresses.any? }
    lead_to(second)
    second.wait_for_output(/the certificate for shared.example, other.example is valid until/)
    files = Dir.glob(first.path("state/*/certificates/shared.example*.pem"))

    assert_equal [%w[shared.example], %w[other.example shared.example]],
                 files.map { |path| hosts_of(OpenSSL::X509::Certificate.new(File.read(path))) }.sort_by(&:size)
    refute_match(/ordering.*ordering/m, first.stdout)
  end

  def test_an_authority_that_wants_an_external_account_says_so
    server = with_acme("nobody.example", authority: strict)
    server.wait_for_output(/there is no new certificate for nobody.example: .*\(externalAccountRequired\)/)
    pass
  end

  def test_the_status_tells_until_when_each_certificate_is_valid
    server = with_acme("status.example", arguments: %w[--control-url tcp://127.0.0.1:0 --control-token none])
    server.wait_for_output(/is valid until/)
    url = server.stdout[/control server on (\S+)/, 1].sub("tcp", "http")
    status = JSON.parse(Net::HTTP.get(URI("#{url}/status")))["acme"].first
    expiry = certificate(server, "status.example").not_after

    assert_equal [["status.example"], 0, nil], status.values_at("hosts", "failures", "error")
    assert_equal expiry, Time.iso8601(status["expires_at"])
    assert_includes Time.now..expiry, Time.iso8601(status["next_attempt_at"])

    Fairlead::Control::Tool.run(["-C", url.sub("http", "tcp"), "status"], output: (output = StringIO.new), errors: $stderr)

    assert_includes output.string, "certificate for status.example: valid until #{status["expires_at"]}, next order at #{status["next_attempt_at"]}\n"
  end

  private

  # Child of the process with the application.
  def ordering_process(server, host)
    parent = server.spawner_pid || server.serving_pid
    server.children(/\Afairlead: acme #{host}/, of: parent).first if parent
  end

  def assert_modes(server)
    Dir.glob(server.path("state/**/*")).push(server.path("state")).each do |path|
      assert_equal File.directory?(path) ? 0o700 : 0o600, File.stat(path).mode & 0o777, path
    end
  end
end
