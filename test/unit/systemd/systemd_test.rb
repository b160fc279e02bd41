# frozen_string_literal: true

require "test_helper"
require "support/notify_socket"

class SystemdTest < Minitest::Test
  include Fairlead::Test::Folders

  Systemd = Fairlead::Systemd

  def teardown
    @socket&.close
  end

  def listen(name) = @socket = Fairlead::Test::NotifySocket.new(name)

  def test_messages_arrive_at_a_path_and_at_an_abstract_name
    in_folder do |folder|
      ["#{folder}/notify", "@fairlead-test-#{$$}"].each do |name|
        socket = listen(name)
        systemd = Systemd.from({ "NOTIFY_SOCKET" => name })
        systemd.ready
        systemd.status("fine")
        systemd.alive
        systemd.stopping

        assert_equal %w[READY=1 STATUS=fine WATCHDOG=1 STOPPING=1], socket.read.messages
        socket.close
      end
    end
    @socket = nil
  end

  def test_a_reload_has_its_time
    in_folder do |folder|
      socket = listen("#{folder}/notify")
      before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
      Systemd.from({ "NOTIFY_SOCKET" => "#{folder}/notify" }).reloading
      message = socket.read.messages.first

      assert_match(/\ARELOADING=1\nMONOTONIC_USEC=(\d+)\z/, message)
      assert_includes before..Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond), Integer(message[/\d+\z/], 10)
    end
  end

  def test_sockets_are_given_away_one_by_one
    in_folder do |folder|
      socket = listen("#{folder}/notify")
      server = TCPServer.new("127.0.0.1", 0)
      Systemd.from({ "NOTIFY_SOCKET" => "#{folder}/notify" }).store([server])

      assert_equal ["FDSTORE=1\nFDNAME=fairlead\nFDPOLL=0"], socket.read.messages
      assert_equal(1, socket.ios.count { |io| io.stat.ino == server.stat.ino })
    ensure
      server.close
    end
  end

  def test_a_systemd_that_is_gone_is_no_error
    refute Systemd.from({ "NOTIFY_SOCKET" => "/nowhere/notify" }).ready
  end

  def test_without_a_socket_that_it_knows_there_is_none
    [{}, { "NOTIFY_SOCKET" => "" }, { "NOTIFY_SOCKET" => "vsock:2:1" }, { "NOTIFY_SOCKET" => "/run/x", "PUMA_SKIP_SYSTEMD" => "1" }]
      .each { |environment| assert_nil Systemd.from(environment) }
  end

  def test_the_watchdog_is_for_the_process_that_it_names
    { nil => 2.5, Process.pid.to_s => 2.5, "1" => nil }.each do |pid, seconds|
      environment = { "NOTIFY_SOCKET" => "@x", "WATCHDOG_USEC" => "2500000", "WATCHDOG_PID" => pid }.compact
      actual = Systemd.from(environment).watchdog

      seconds ? assert_in_delta(seconds, actual) : assert_nil(actual)
    end
    assert_nil Systemd.from({ "NOTIFY_SOCKET" => "@x", "WATCHDOG_USEC" => "0" }).watchdog
  end
end
