# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/http_client"
require "support/socket_activation"

# Sockets that systemd opens before the server starts, with the real systemd-socket-activate.
class SocketActivationTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Folders
  include Fairlead::Test::Secured

  Activation = Fairlead::Test::SocketActivation
  APP = "run ->(env) { [200, {}, [ENV.keys.grep(/LISTEN/).inspect]] }"

  def setup
    skip "#{Activation::PROGRAM} is not installed (package systemd)" unless Activation.available?
    @port = Activation.free_port
  end

  # The request that makes systemd start the server waits in the socket until the server responds.
  def first_answer(socket = TCPSocket.new("127.0.0.1", @port)) = adopt(socket).get

  def activate(*arguments, addresses: ["127.0.0.1:#{@port}"], **options)
    own(Activation.new(APP, *arguments, addresses: addresses, **options)).launch
  end

  def test_the_request_that_starts_the_server_is_answered
    server = activate(bind: "tcp://127.0.0.1:#{@port}")

    assert_equal "[]", first_answer.body # only the server gets the variables
    server.wait_for_output(Fairlead::Test::ServerProcess::READY)
    assert_equal ["http://127.0.0.1:#{@port}"], server.addresses
    assert_equal 0, server.stop.exitstatus
  end

  def test_workers_serve_an_activated_socket
    server = activate("-w", "2", bind: "tcp://localhost:#{@port}")

    assert_equal 200, first_answer.status
    server.wait_for_output(Fairlead::Test::ServerProcess::READY)
    assert_equal 0, server.stop.exitstatus
  end

  def test_an_activated_socket_speaks_tls_if_its_address_does
    files = certificate_files
    server = activate("-w", "2", bind: "ssl://127.0.0.1:#{@port}?cert=cert.pem&key=key.pem", files: files)

    assert_equal "[]", tls_get(@port)
    server.signal(:USR1)
    server.wait_for_output(/phased restart: done/)
    assert_equal "[]", tls_get(@port)
    assert_equal ["https://127.0.0.1:#{@port}"], server.addresses
  end

  def test_connections_of_an_activated_socket_begin_with_the_header_that_its_address_wants
    server = activate("-w", "2", bind: "tcp://127.0.0.1:#{@port}?proxy_protocol=v1")
    statuses = lambda do
      ["PROXY UNKNOWN\r\n", ""].map { |header| adopt(TCPSocket.new("127.0.0.1", @port)).write(header).get.status }
    end

    assert_equal [200, 400], statuses.call
    server.signal(:USR1)
    server.wait_for_output(/phased restart: done/)
    assert_equal [200, 400], statuses.call
  end

  def test_every_activated_socket_can_be_listened_on
    server = activate("--bind-to-activated-sockets", addresses: ["127.0.0.1:#{@port}", "@fairlead-test-#{@port}"], bind: "tcp://127.0.0.1:0")

    assert_equal 200, first_answer.status
    assert_equal 200, first_answer(Socket.unix("\0fairlead-test-#{@port}")).status
    server.wait_for_output(Fairlead::Test::ServerProcess::READY)
    assert_equal 3, server.addresses.size
  end

  def test_with_only_nothing_else_is_opened
    server = activate("--bind-to-activated-sockets", "only", bind: "tcp://127.0.0.1:0")

    assert_equal 200, first_answer.status
    server.wait_for_output(Fairlead::Test::ServerProcess::READY)
    assert_equal ["http://127.0.0.1:#{@port}"], server.addresses
  end

  # No interface of this machine has the configured address.
  def test_with_only_a_hot_restart_does_not_ask_for_addresses_that_are_not_used
    [[], ["-w", 1]].each do |flags|
      @port = Activation.free_port
      server = activate("--bind-to-activated-sockets", "only", *flags, bind: "tcp://192.0.2.77:80")

      assert_equal 200, first_answer.status
      server.wait_for_output(Fairlead::Test::ServerProcess::READY)
      server.signal(:USR2)
      wait_until("the restart") { server.stdout.match?(/ready in.* ready in|hot restart: done/m) || server.stderr.include?("hot restart: failed") }

      assert_equal 200, first_answer.status
      refute_includes server.stderr, "hot restart: failed"
    end
  end

  def test_a_socket_at_no_address_of_the_server_is_closed_and_named
    server = activate(bind: "tcp://127.0.0.1:0")
    adopt(TCPSocket.new("127.0.0.1", @port))

    server.wait_for_output(/closed http:\/\/127\.0\.0\.1:#{@port}, which was passed .* bind_to_activated_sockets/)
    server.wait_for_output(Fairlead::Test::ServerProcess::READY)
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", @port) }
  end

  def test_the_file_of_an_activated_socket_stays
    in_folder do |folder|
      path = "#{folder}/app.sock"
      server = activate(addresses: [path], bind: "unix://#{path}")

      assert_equal 200, first_answer(Socket.unix(path)).status
      server.stop
      assert_path_exists path
    end
  end
end
