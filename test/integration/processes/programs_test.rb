# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/restarts"
require "support/socket_activation"

# A program that the application starts inherits no socket of the server, and no ignored signal.
class ProgramsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Restarts

  # Number of sockets in a program that the application has started, and the mask of its ignored signals.
  APP = <<~'RUBY'
    run ->(_env) { [200, {}, [`ls -l /proc/self/fd | grep -c socket:; grep SigIgn /proc/self/status`]] }
  RUBY

  NOTHING = "0\nSigIgn:\t0000000000000000\n"

  def test_a_program_starts_with_no_socket_and_no_ignored_signal
    [[], ["-w", 1]].each do |processes|
      assert_equal NOTHING, answer(serve(APP, *processes))
    end
  end

  def test_after_a_hot_restart_neither
    [[], ["-w", 1]].each do |processes|
      server = serve(APP, *processes)
      server.signal(:USR2)
      wait_until("the new program") { server.stdout.match?(/restart: done/) || server.stdout.scan(/ ready /).size == 2 }

      assert_equal NOTHING, answer(server)
    end
  end

  def test_with_a_socket_of_systemd_neither
    skip "#{Fairlead::Test::SocketActivation::PROGRAM} is not installed (package systemd)" unless Fairlead::Test::SocketActivation.available?
    port = Fairlead::Test::SocketActivation.free_port
    own(Fairlead::Test::SocketActivation.new(APP, "-w", 1, addresses: ["127.0.0.1:#{port}"], bind: "tcp://127.0.0.1:#{port}")).launch

    assert_equal NOTHING, adopt(TCPSocket.new("127.0.0.1", port)).get.body
  end
end
