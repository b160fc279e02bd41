# frozen_string_literal: true

require "test_helper"
require "socket"

class InheritedTest < Minitest::Test
  include Fairlead::Test::Folders

  Inherited = Fairlead::Inherited
  Listener = Fairlead::Listener
  Listeners = Fairlead::Listeners

  def teardown
    (@open || []).each(&:close)
  end

  # A listening socket from another program: this process knows only its number.
  def descriptor(address = Addrinfo.tcp("127.0.0.1", 0))
    socket = address.listen
    (@open ||= []) << socket
    copy = socket.dup
    copy.autoclose = false
    copy.fileno
  end

  def adopt(descriptor, binding = nil, **options)
    Listener.adopt(descriptor, binding, **options).tap { |listener| (@open ||= []) << listener }
  end

  def listen(*addresses, inherited:, **options, &unused)
    Listeners.open(addresses, backlog: 5, inherited: inherited, **options, &unused).tap { |all| (@open ||= []) << all }
  end

  def test_a_listener_knows_the_address_of_the_descriptor_it_adopts
    listener = adopt(number = descriptor)

    assert_equal number, listener.fileno
    assert_equal({ scheme: "http", host: "127.0.0.1", port: @open.first.local_address.ip_port }, listener.address)
    assert_equal({ scheme: "http", path: "@fairlead-#{$$}" }, adopt(descriptor(Addrinfo.unix("\0fairlead-#{$$}"))).address)
  end

  def test_a_descriptor_that_does_not_listen_is_refused
    reader, writer = IO.pipe
    pair = Socket.pair(:UNIX, :STREAM)
    [reader.fileno, pair.first.fileno, 9_999].each do |number|
      assert_match(/descriptor #{number}/, assert_raises(Fairlead::BindError) { Listener.adopt(number) }.message)
    end
  ensure
    [reader, writer, *pair].each { |io| io.autoclose = false }
  end

  def test_a_binding_takes_what_listens_at_its_address
    listener = adopt(descriptor, kept: true)
    listeners = listen("tcp://127.0.0.1:#{listener.port}?backlog=7", inherited: Inherited.new([listener]))

    assert_equal [listener], listeners.to_a
  end

  def test_every_interface_is_the_same_address_in_both_families
    listener = adopt(descriptor(Addrinfo.tcp("::", 0)), kept: true)

    assert_equal [listener], listen("tcp://0.0.0.0:#{listener.port}", inherited: Inherited.new([listener])).to_a
  end

  def test_a_unix_binding_takes_what_listens_on_its_path
    in_folder do |folder|
      listener = adopt(descriptor(Addrinfo.unix("#{folder}/app.sock")), kept: true)

      assert_equal [listener], listen("unix://app.sock?umask=0111", inherited: Inherited.new([listener])).to_a
    end
  end

  def test_a_port_that_the_system_chose_stays_the_same_when_it_is_shared
    binding = "tcp://127.0.0.1:0"
    first = listen(binding, inherited: Inherited.new)
    second = listen(binding, inherited: Inherited.shared(first.map(&:to_io), [binding]))

    assert_equal first.ports, second.ports
    assert_equal binding, second.first.binding
    assert_predicate second.first, :shared?
  end

  def test_what_nobody_takes_is_closed_and_reported
    listener = adopt(number = descriptor)
    unused = []
    listen("tcp://127.0.0.1:0", inherited: Inherited.new([listener])) { |one| unused << one }

    assert_equal [listener], unused
    assert_raises(Errno::EBADF) { Socket.for_fd(number) }
  end

  def test_all_sockets_of_systemd_can_be_listened_on
    listener = adopt(descriptor, kept: true)
    listeners = listen("tcp://127.0.0.1:0", inherited: Inherited.new([listener]), activated: :all)

    assert_equal 2, listeners.count
    assert_includes listeners, listener
  end

  def test_with_only_nothing_else_is_opened
    listener = adopt(descriptor, kept: true)

    assert_equal [listener], listen("tcp://192.0.2.1:1", inherited: Inherited.new([listener]), activated: :only).to_a
    assert_equal 1, listen("tcp://127.0.0.1:0", inherited: Inherited.new, activated: :only).count
  end

  def test_the_sockets_of_systemd_go_on_listening_when_the_server_removes_its_own
    listener = adopt(descriptor, kept: true)
    listeners = listen("tcp://127.0.0.1:#{listener.port}", inherited: Inherited.new([listener]))
    listeners.remove

    TCPSocket.open("127.0.0.1", listener.port).close
  end

  def test_the_file_of_an_inherited_socket_is_removed_at_the_end
    in_folder do |folder|
      adopt(descriptor(Addrinfo.unix("#{folder}/app.sock"))).remove

      refute_path_exists "app.sock"
    end
  end

  def test_the_variables_of_systemd_count_for_one_process_and_are_removed
    environment = { "LISTEN_FDS" => "2", "LISTEN_PID" => (Process.pid + 1).to_s, "LISTEN_FDNAMES" => "a:b", "OTHER" => "1" }

    refute_predicate Inherited.take(environment), :activated?
    assert_equal({ "OTHER" => "1" }, environment)
  end
end
