# frozen_string_literal: true

require "test_helper"
require "net/http"
require "support/certificates"
require "support/processes"

# Failures at one address, or in one process, while certificates are reloaded: all others get the new ones, the server
# continues, and the failed ones are retried.
class ReloadApartTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured
  include Fairlead::Test::Waiting

  Authority = Fairlead::Test::Authority
  APP = "run ->(_env) { [200, {}, [Process.pid.to_s]] }"
  MODES = { "alone" => [], "workers" => ["-w", 2] }.freeze
  REFUSED = /certificates not reloaded for ssl:/
  BOOTED = /worker \d booted/
  RELOADED = /certificates reloaded for ssl:/

  def test_a_broken_file_of_one_address_keeps_a_revoked_client_in_at_no_other_one
    MODES.each_value do |arguments|
      server = serve_two(*arguments)
      server.write("key.pem", "broken")
      server.write("ca.crl", Authority.usual.revoke(client))
      server.signal(:HUP)

      wait_until("the revocation") { 6.times.none? { admitted?(server) } }
      assert_equal [first_serial], serials(server.ports.first)
      wait_until("both lines") { server.log.match?(REFUSED) && server.log.match?(RELOADED) }
      assert_equal [1, 1], [server.log.scan(/#{REFUSED}.*key\.pem: it contains no private key/).size, server.log.scan(RELOADED).size]
    end
  end

  def test_what_a_password_command_does_ends_no_server
    MODES.each_value do |arguments|
      server = serve_encrypted(*arguments)
      server.write("password", "<p>no</p>" * 1000)
      server.signal(:HUP)
      assert_logged(/#{REFUSED}.*: key_password_command prints more than 1024 bytes/, server)
      assert_equal [first_serial], serials(server.port)
      server.write("password", "a secret")
      server.write("cert.pem", second.pem)
      server.write("key.pem", encrypted(second))
      wait_until("the new certificate without another request") { serials(server.port) == [second.certificate.serial] }
      assert_equal 0, server.stop.exitstatus
    end
  end

  def test_a_password_command_that_runs_ends_with_the_server
    MODES.each_value do |arguments|
      server = serve_encrypted(*arguments, command: "sh+password.sh")
      server.write("password.sh", "sleep 600 & echo $! > started; wait; true")
      server.signal(:HUP)
      wait_until("the command") { File.size?(server.path("started")) }
      server.signal(:TERM)
      assert_equal 0, server.wait_exit.exitstatus
      started = Integer(File.read(server.path("started")), 10)
      wait_until("the end of its child") { !Fairlead::Test::Processes.alive?(started) }
    ensure
      Process.kill(:KILL, started) if started && Fairlead::Test::Processes.alive?(started)
    end
  end

  def test_without_a_descriptor_the_process_that_reads_the_files_goes_on_and_tries_again
    MODES.each_value do |arguments|
      server = serve_tls(APP, *arguments, "--watch-certificates", 0)
      replace_first(server)
      without_descriptors(server.spawner_pid || server.serving_pid) do
        server.signal(:HUP)
        assert_logged(/#{REFUSED}.*EMFILE/, server)
        assert_predicate server, :running?
      end
      wait_until("the new certificate without another request") { serials(server.port) == [second.certificate.serial] }
    end
  end

  def test_a_worker_that_alone_has_no_descriptor_says_so_and_catches_up
    server = serve_tls(APP, "-w", 2, "--watch-certificates", 0)
    worker = server.worker_pids.first
    replace_first(server)
    without_descriptors(worker) do
      server.signal(:HUP)
      assert_logged(/certificates not reloaded for ssl:\S+ in worker \d \(pid #{worker}\): .*EMFILE.*; trying again/, server)
      refute_match(RELOADED, server.log)
    end
    server.wait_for_output(RELOADED)
    assert_equal [second.certificate.serial], serials(server.port)
    assert_equal 1, server.stderr.scan("(pid #{worker})").size
  end

  def test_a_file_that_hangs_delays_no_other_address_and_no_end
    MODES.each_value do |arguments|
      server = serve_two(*arguments)
      File.unlink(server.path("cert.pem"))
      File.mkfifo(server.path("cert.pem"))
      server.write("ca.crl", Authority.usual.revoke(client))
      server.signal(:HUP)

      wait_until("the revocation") { 6.times.none? { admitted?(server) } }
      server.wait_for_output(RELOADED)
      assert_equal 0, server.stop.exitstatus
    end
  end

  def test_a_file_that_never_rests_delays_no_other_address_and_is_read_itself
    server = serve_two("-w", 2, watch: 0.2)
    writing = Thread.new { loop { server.write("key.pem", File.read(server.path("key.pem"))) && sleep(0.01) } }
    server.write("ca.crl", Authority.usual.revoke(client))
    wait_until("the revocation") { 6.times.none? { admitted?(server) } }
    writing.kill.join
    replace_first(server)
    writing = Thread.new { loop { File.utime(Time.now, Time.now, server.path("key.pem")) && sleep(0.01) } }
    wait_until("the new certificate", seconds: 40) { serials(server.ports.first) == [second.certificate.serial] }
  ensure
    writing&.kill&.join
  end

  def test_files_that_a_restart_has_brought_are_watched
    { USR1: /phased restart: done/, USR2: /hot restart: done/ }.each do |signal, done|
      server = serve_configured
      server.write("later.crl", Authority.usual.revoke)
      server.write("fairlead.rb", configured("later.crl"))
      server.signal(signal)
      server.wait_for_output(done, seconds: 30)
      assert admitted?(server, -1) # an address with port 0 may have got another port
      server.write("later.crl", Authority.usual.revoke(client))
      wait_until("the revocation", seconds: 20) { 6.times.none? { admitted?(server, -1) } }
    end
  end

  # The files of two addresses are unusable; a third address, without TLS, has none.
  def test_a_lost_spawner_and_workers_are_replaced_while_files_are_broken
    server = serve_two("-b", "tcp://127.0.0.1:0", "-w", 2)
    server.write("key.pem", "broken")
    File.unlink(server.path("ca.crl"))
    2.times do # the second time, the supervisor has the configuration of the replaced spawner
      replace_all(server)

      assert_includes server.worker_pids.map(&:to_s), Net::HTTP.get(URI("http://127.0.0.1:#{server.ports.last}/"))
      assert_equal [first_serial], serials(server.ports.first)
      assert admitted?(server)
      wait_until("the attempts of the supervisor") { server.log.scan(REFUSED).size >= 2 }
    end
    server.write("ca.crl", Authority.usual.revoke(client))
    replace_first(server)
    server.signal(:HUP)
    wait_until("the revocation") { 6.times.none? { admitted?(server) } }
    wait_until("the new certificate") { serials(server.ports.first) == [second.certificate.serial] }
  end

  # The supervisor has no certificate for an address that is new in the configuration.
  def test_a_spawner_that_replaces_a_lost_one_refuses_handshakes_at_an_address_that_nobody_has_read
    server = serve_configured
    server.write("fairlead.rb", configured("missing.crl"))
    replace_all(server)
    server.wait_for_output(/no certificate for ssl:.*missing\.crl: cannot be read \(ENOENT\)/)
    assert_raises(OpenSSL::SSL::SSLError, SystemCallError) { tls_get(server.port, pair: client) }
    server.write("missing.crl", Authority.usual.revoke)
    wait_until("the certificate", seconds: 20) { admitted?(server, 0) }
  end

  private

  # Kills the spawner, then the workers, as the system does when it is out of memory.
  def replace_all(server)
    booted = server.log.scan(BOOTED).size
    [server.spawner_pid, *server.worker_pids].each { |pid| Process.kill(:KILL, pid) }
    wait_until("other workers", seconds: 30) { server.log.scan(BOOTED).size == booted + 2 }
  end

  def first = Authority.usual.server("localhost")
  def second = Authority.usual.server("localhost", number: 1)
  def client = Authority.usual.client
  def first_serial = first.certificate.serial

  # The second address requests client certificates.
  def serve_two(*arguments, watch: 0)
    files = { "ca.crl" => Authority.usual.revoke, "cert2.pem" => first.pem, "key2.pem" => first.key_pem }
    other = "ssl://127.0.0.1:0?cert=cert2.pem&key=key2.pem&ca=ca.pem&crl=ca.crl&verify_mode=force_peer"
    serve_tls(APP, "-b", other, *arguments, "--watch-certificates", watch, files: files)
  end

  def serve_encrypted(*arguments, command: "cat+password")
    files = { "key.pem" => encrypted(first), "password" => "a secret\n", "password.sh" => "cat password" }
    serve_tls(APP, *arguments, "--watch-certificates", 0, query: { key_password_command: command }, files: files)
  end

  def encrypted(pair) = pair.key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "a secret")

  def serve_configured
    files = { **certificate_files, "ca.pem" => Authority.usual.pem, "ca.crl" => Authority.usual.revoke, "fairlead.rb" => configured("ca.crl") }
    serve(APP, "-C", "fairlead.rb", files: files, bind: nil)
  end

  def configured(list)
    <<~RUBY
      workers 2
      watch_certificates 0.2
      bind "#{ssl_address(ca: "ca.pem", crl: list, verify_mode: "force_peer")}"
    RUBY
  end

  def replace_first(server)
    server.write("cert.pem", second.pem)
    server.write("key.pem", second.key_pem)
  end

  # Serial numbers of the certificates on eight connections.
  def serials(port)
    Array.new(8) do
      socket = tls_socket(port)
      socket.peer_cert.serial.tap { socket.close }
    end.uniq
  end

  def admitted?(server, index = 1)
    !tls_get(server.ports[index], pair: client).empty?
  rescue OpenSSL::SSL::SSLError
    false
  end

  # During the block, the process cannot open any more files.
  def without_descriptors(pid)
    limit = File.read("/proc/#{pid}/limits").match(/Max open files +(\d+) +(\d+)/).captures
    system("prlimit", "--pid", pid.to_s, "--nofile=3:#{limit.last}", exception: true)
    yield
  ensure
    system("prlimit", "--pid", pid.to_s, "--nofile=#{limit.join(":")}", exception: true)
  end
end
