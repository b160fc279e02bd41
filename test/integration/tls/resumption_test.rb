# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/restarts"

# Sessions that clients resume: in every worker, and in the programs after a restart.
class TlsResumptionTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  Authority = Fairlead::Test::Authority
  VERSIONS = %w[1.2 1.3].freeze
  APP = "run ->(_env) { [200, {}, [Process.pid.to_s]] }"

  def test_a_session_is_resumed_in_every_worker_and_after_restarts
    server = serve_tls(APP, "-w", 2, "--no-preload")
    VERSIONS.each do |version|
      session, = session_of(server, version)
      workers = resume_in_workers(server, session, version, 2)
      server.signal(:USR1)
      wait_until("new workers") { (server.worker_pids & workers).empty? && server.worker_pids.size == 2 }
      after_phased = resume_in_workers(server, session, version, 2)

      assert_empty workers & after_phased
    end
    session, = session_of(server, "1.3")
    server.signal(:USR2)
    wait_until("the hot restart", seconds: 30) { server.stdout.include?("hot restart: done") }

    workers = resume_in_workers(server, session, "1.3", 2)
    server.signal(:URG)
    wait_until("the refork") { (server.worker_pids & workers).empty? && server.worker_pids.size == 2 }
    resume_in_workers(server, session, "1.3", 2)
  end

  def test_listeners_keep_their_own_rules_through_restarts
    query = "cert=cert.pem&key=key.pem"
    asking = "ssl://127.0.0.1:0?#{query}&verify_mode=force_peer&ca=ca.pem"
    server = serve(APP, "-b", asking, "-w", 1, files: { "ca.pem" => Authority.usual.pem, **certificate_files }, bind: "ssl://127.0.0.1:0?#{query}")
    { USR1: "phased restart: done", URG: "refork: done", USR2: "hot restart: done" }.each do |signal, line|
      server.signal(signal)
      wait_until(line, seconds: 30) { server.stdout.include?(line) }

      assert_match(/\A\d+\z/, tls_get(server.ports[0]))
      assert_raises(OpenSSL::SSL::SSLError) { tls_get(server.ports[1]) }
      assert_match(/\A\d+\z/, tls_get(server.ports[1], pair: Authority.usual.client))
    end
  end

  def test_a_server_without_workers_hands_its_keys_over_too
    server = serve_tls(APP)
    session, = session_of(server, "1.3")

    assert resumed?(server, session)
    server.signal(:USR2)
    server.wait_for_output(/hot restart: done/, seconds: 30)
    assert resumed?(server, session)
  end

  def test_a_session_is_not_resumed_where_other_rules_hold
    query = "cert=cert.pem&key=key.pem"
    files = { "ca.pem" => Authority.usual.pem, **certificate_files }
    addresses = ["ssl://127.0.0.1:0?#{query}", "ssl://localhost:0?#{query}&verify_mode=force_peer&ca=ca.pem"]
    server = serve(APP, "-b", addresses.last, files: files, bind: addresses.first)
    client = Authority.usual.client
    session, = session_of(server, "1.3")

    assert resumed?(server, session)
    refute resumed?(server, session, port: server.ports[1], pair: client)
    assert_raises(OpenSSL::SSL::SSLError) { resumed?(server, session, port: server.ports[1]) }
    own_session, = session_of(server, "1.3", port: server.ports[1], pair: client)
    assert resumed?(server, own_session, port: server.ports[1], pair: client)
  end

  def test_machines_with_the_same_keys_resume_each_others_sessions
    keys = [Random.bytes(80), Random.bytes(48)]
    files = { "new.key" => keys[0], "old.key" => keys[1] }
    first = serve_tls(APP, "--tls-ticket-keys", "old.key", files: files)
    second = serve_tls(APP, "--tls-ticket-keys", "new.key", "--tls-ticket-keys", "old.key", files: files)
    third = serve_tls(APP, "--tls-ticket-keys", "new.key", files: files)
    session, = session_of(first, "1.2")

    assert resumed?(second, session, version: "1.2")
    refute resumed?(third, session, version: "1.2")
    broken = launch_tls(APP, "--tls-ticket-keys", "short.key", files: { "short.key" => "x" })
    assert_equal 1, broken.wait_exit.exitstatus
    assert_match(/short\.key: a key of session tickets has 48 or 80 bytes, not 1$/, broken.stderr)
  end

  private

  # Returns a session of the server, and its response.
  def session_of(server, version, port: server.port, pair: nil)
    sessions = []
    socket = tls_socket(port, version: version, pair: pair, on_session: ->(session) { sessions << session })
    [(answer = read_answer(socket)) && sessions.last, answer]
  end

  def resumed?(server, session, port: server.port, **options)
    socket = tls_socket(port, session: session, **options)
    reused = socket.session_reused?
    read_answer(socket)
    reused
  end

  # Resumes the session until that many workers have responded; returns these.
  def resume_in_workers(server, session, version, count)
    workers = []
    wait_until("responses of #{count} workers") do
      socket = tls_socket(server.port, session: session, version: version)
      assert_predicate socket, :session_reused?, "#{version} after #{workers}"
      workers |= [Integer(read_answer(socket), 10)]
      workers.size == count
    end
    workers.sort
  end

  def read_answer(socket)
    socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    socket.read.split("\r\n\r\n", 2).last
  ensure
    socket.close
  end
end
