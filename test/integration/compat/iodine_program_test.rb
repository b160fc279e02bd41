# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/launched_by"
require "support/real_time"

# A plain program that serves with Iodine.start, written for iodine.
class IodineProgramTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Secured

  PROGRAM = <<~'RUBY'
    require "fairlead/compat/iodine"

    module Echo
      def self.call(env)
        return [200, {}, [[Iodine.master?, Iodine.worker?, Iodine.running?, Iodine.workers].inspect]] unless env["rack.upgrade?"]
        return [200, {}, [Iodine.stop.inspect]] if env["PATH_INFO"] == "/stop"

        env["rack.upgrade"] = self
        [0, {}, []]
      end

      def self.on_message(client, data) = client.write("echo #{data}")
    end

    %i[pre_start before_fork after_fork enter_child enter_master on_start start_shutdown on_finish].each do |state|
      Iodine.on_state(state) { File.write("states", "#{$$} #{state}\n", mode: "a") }
    end
    Iodine.workers = Integer(ARGV.first, 10)
    Iodine.listen(service: :http, handler: Echo, address: "127.0.0.1", port: 0, public: "www")
    Iodine.start
    puts "and after that"
  RUBY

  WITH_TLS = <<~'RUBY'
    require "fairlead/compat/iodine"

    module Echo
      def self.call(env)
        return [200, {}, [env.values_at("rack.url_scheme", "SSL_CLIENT_VERIFY").join(" ")]] unless env["rack.upgrade?"]

        env["rack.upgrade"] = self
        [0, {}, []]
      end

      def self.on_message(client, data) = client.write("echo #{data}")
    end

    tls = Iodine::TLS.new("localhost", "cert.pem", "key.pem", "it's a secret")
    tls.trust("ca.pem")
    tls.on_protocol("http/1.1") { Echo }
    Iodine.workers = Integer(ARGV.first, 10)
    Iodine.listen(service: :http, handler: Echo, address: "127.0.0.1", port: 0, tls: tls)
    Iodine.start
  RUBY

  def test_a_process_of_its_own
    server = program(1)

    assert_equal ["[true, true, true, 1]", "page"], [get(server).body, get(server, "/page.txt").body]
    socket = web_socket(server)
    socket.send_text("hi")
    assert_equal "echo hi", socket.receive.last
    socket.close(1000).receive_close
    assert_predicate server.stop, :success?
    assert_includes server.stdout, "and after that"
    assert_equal [[server.pid, %w[pre_start on_start start_shutdown on_finish]]], states(server)
  end

  def test_workers
    server = program(2)
    workers = server.worker_pids
    spawner = server.spawner_pid

    assert_equal "[false, true, true, 2]", get(server).body
    assert_predicate server.stop, :success?
    seen = states(server).to_h
    root = seen.delete(spawner)
    assert_equal workers, seen.keys.sort
    assert_equal %w[pre_start before_fork after_fork enter_master before_fork after_fork enter_master on_finish], root
    seen.each_value { |of_worker| assert_equal %w[after_fork enter_child on_start start_shutdown on_finish], of_worker }
  end

  def test_a_worker_that_stops_is_replaced_and_the_root_process_ends
    server = program(2)
    before = server.worker_pids
    get(server, "/stop", SSE)
    wait_until("another worker") { (server.worker_pids - before).size == 1 && server.worker_pids.size == 2 }

    assert_match(/\A\[false, true/, get(server).body)
    single = program(1)
    get(single, "/stop", SSE)
    assert_predicate single.wait_exit, :success?
  end

  def test_https_and_wss_for_clients_that_it_trusts
    pair = Fairlead::Test::Authority.usual.client
    [1, 2].each do |workers|
      server = program_with_tls(workers)

      assert_equal "https SUCCESS", tls_get(server.port, pair: pair)
      socket = adopt_web_socket(Fairlead::Test::WebSocket.over(relayed_tls_socket(server.port, pair: pair)))
      socket.send_text("hi")
      assert_equal "echo hi", socket.receive.last
      assert_raises(OpenSSL::SSL::SSLError) { tls_get(server.port, version: "1.2") }
      refute_includes server.log, "secret"
    end
  end

  SSE = { "accept" => "text/event-stream" }.freeze

  private

  def program(workers)
    files = { "program.rb" => PROGRAM, "www/page.txt" => "page" }
    own(Fairlead::Test::LaunchedBy.new("program.rb", nil, workers, files: files)).start
  end

  # The key is encrypted.
  def program_with_tls(workers)
    pair = Fairlead::Test::Authority.usual.server("localhost")
    key = pair.key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "it's a secret")
    files = { "program.rb" => WITH_TLS, "cert.pem" => pair.pem, "key.pem" => key, "ca.pem" => Fairlead::Test::Authority.usual.pem }
    own(Fairlead::Test::LaunchedBy.new("program.rb", nil, workers, files: files)).start
  end

  # Returns [pid, states in order] of each process.
  def states(server)
    File.readlines(server.path("states"), chomp: true).map(&:split).group_by { |pid, _| Integer(pid, 10) }
        .map { |pid, lines| [pid, lines.map(&:last)] }
  end
end
