# frozen_string_literal: true

require "test_helper"
require "net/http"
require "support/certificates"
require "support/control"

# New certificates without a restart: on demand, by a signal, or because the files have changed.
class CertificateReloadTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  Authority = Fairlead::Test::Authority
  APP = "run ->(_env) { [200, {}, [Process.pid.to_s]] }"
  RELOADS = Integer(ENV.fetch("FAIRLEAD_RELOADS", "20"), 10)

  def test_asked_for_each_worker_offers_the_new_one_and_running_connections_stay
    server = serve_tls(APP, "-w", 2, "--watch-certificates", 0, *FLAGS)
    running = tls_socket(server.port)
    replace(server, 1)
    status, output, = ctl("-S", server.path(STATE), "reload-certificates")

    assert_equal [0, "reload-certificates: ok\n"], [status, output]
    server.wait_for_output(/certificates reloaded for ssl:/)
    wait_until("the new certificate in both workers") { serials(server, 6).uniq == [serial(1)] }
    running.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert_equal serial(0), running.peer_cert.serial
    assert_match(/\AHTTP.1.1 200 /, running.read)
    server.signal(:TTIN)
    server.wait_for_workers(3)
    assert_equal [serial(1)], serials(server, 9).uniq
  ensure
    running&.close
  end

  def test_a_signal_reloads_and_what_is_broken_is_refused
    server = serve_tls(APP, "--watch-certificates", 0)
    server.write("key.pem", pair(1).key_pem)
    server.signal(:HUP)
    assert_logged(/certificates not reloaded for ssl:\S+, the former ones stay: the key \S+ does not belong to the certificate/, server)

    assert_equal [serial(0)], serials(server, 2).uniq
    replace(server, 1)
    server.signal(:HUP)
    server.wait_for_output(/certificates reloaded/)
    assert_equal [serial(1)], serials(server, 2).uniq
    assert_predicate server, :running?
    assert_equal 1, server.stderr.scan("not reloaded").size
  end

  # The files in memory that hold them also hold their keys.
  def test_the_supervisor_forgets_the_certificates_of_a_former_configuration
    linux_only("names of files in memory")
    settings = ->(name) { "workers 1\nbind 'ssl://127.0.0.1:0?cert=#{name}.pem&key=key.pem'\n" }
    files = { "fairlead.rb" => settings.call("cert"), "other.pem" => pair(0).pem, **certificate_files(pair(0)) }
    server = launch(APP, "-C", "fairlead.rb", bind: nil, files: files, &:start)
    assert_certificates_kept(1, server)

    { settings.call("other") => 1, "workers 1\nbind 'tcp://127.0.0.1:0'\n" => 0 }.each.with_index(1) do |(text, count), restarts|
      server.write("fairlead.rb", text)
      server.signal(:USR2)
      wait_until("the restart") { server.stdout.scan("hot restart: done").size == restarts }
      assert_certificates_kept(count, server)
    end
  end

  def test_a_signal_while_the_process_that_reads_them_is_lost_waits_for_its_successor
    [0, 2].each do |workers|
      server = serve_tls("sleep 0.5 if File.exist?('slow')\n#{APP}", "-w", workers, "--watch-certificates", 0)
      server.write("slow", "")
      replace(server, 1)
      Process.kill(:KILL, workers.zero? ? server.serving_pid : server.spawner_pid)
      assert_logged(/is lost|ended unexpectedly/, server)
      server.signal(:HUP)
      wait_until("the new certificate", seconds: 20) { serials(server, 2).uniq == [serial(1)] }

      assert_predicate server, :running?
    end
  end

  def test_files_that_change_are_noticed
    { "alone" => [], "workers" => ["-w", 2] }.each_value do |arguments|
      server = serve_tls(APP, *arguments, "--watch-certificates", 0.2)
      replace(server, 1)
      wait_until("the new certificate") { serials(server, 4).uniq == [serial(1)] }
      server.write("cert.pem", "broken")
      assert_logged(/certificates not reloaded/, server)
      replace(server, 0)
      wait_until("the old certificate again") { serials(server, 4).uniq == [serial(0)] }
      assert_equal 1, server.stderr.scan("not reloaded").size
    end
  end

  def test_no_request_fails_while_certificates_are_replaced_again_and_again
    server = serve_tls(APP, "-w", 2, "--watch-certificates", 0, *FLAGS)
    failures = under_load(server) do
      RELOADS.times do |number|
        replace(server, number.succ % 2)
        assert_equal 200, command(server, "reload-certificates").status
        wait_until("reload #{number}") { server.stdout.scan("certificates reloaded").size > number }
        wait_until("certificate #{number}") { serials(server, 2).uniq == [serial(number.succ % 2)] }
      end
    end

    assert_empty failures
    assert_empty server.stderr
    wait_until("the last certificate") { serials(server, 4).uniq == [serial(RELOADS % 2)] }
  end

  private

  def pair(number) = Authority.usual.server("localhost", number: number)

  def serial(number) = pair(number).certificate.serial

  # Asserts that the supervisor keeps that many files in memory.
  def assert_certificates_kept(count, server)
    folder = "/proc/#{server.pid}/fd"
    wait_until("#{count} files") do
      Dir.children(folder).count { |fd| File.readlink("#{folder}/#{fd}").include?("fairlead certificates") } == count
    rescue Errno::ENOENT
      false
    end
  end

  # Renames the files into place, like common tools.
  def replace(server, number)
    { "cert.pem" => pair(number).pem, "key.pem" => pair(number).key_pem }.each do |name, text|
      server.write("#{name}.new", text)
      File.chmod(0o600, server.path("#{name}.new"))
      File.rename(server.path("#{name}.new"), server.path(name))
    end
  end

  # Serial numbers of the certificates on that many connections.
  def serials(server, count)
    Array.new(count) do
      socket = tls_socket(server.port)
      socket.peer_cert.serial.tap { socket.close }
    end
  end

  # Returns the failures during the block, of requests on new and on kept connections.
  def under_load(server)
    failures = []
    ending = false
    clients = Array.new(3) { Thread.new { ask_until(server, failures) { ending } } }
    yield
    ending = true
    clients.each(&:join)
    failures
  end

  def ask_until(server, failures)
    until yield
      Net::HTTP.start("localhost", server.port, ipaddr: "127.0.0.1", use_ssl: true, cert_store: trusted, max_retries: 0) do |http|
        5.times do
          response = http.get("/")
          failures << response.code unless response.code == "200"
        end
      end
    end
  rescue StandardError => e
    failures << e
  end

  def trusted = OpenSSL::X509::Store.new.tap { |store| store.add_cert(Authority.usual.certificate) }
end
