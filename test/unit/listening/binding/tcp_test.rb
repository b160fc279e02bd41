# frozen_string_literal: true

require "test_helper"
require "socket"

class TcpBindingTest < Minitest::Test
  Binding = Fairlead::Binding

  def teardown
    @listeners&.each(&:close)
  end

  def test_port_zero_becomes_the_real_port
    listener = open("tcp://127.0.0.1:0").first

    assert_operator listener.port, :>, 0
    assert_equal({ scheme: "http", host: "127.0.0.1", port: listener.port }, listener.address)
    assert_equal "http://127.0.0.1:#{listener.port}", listener.to_s
    TCPSocket.open("127.0.0.1", listener.port, &:close)
  end

  def test_localhost_is_every_loopback_address_on_one_port
    listeners = open("tcp://localhost:0")
    loopback = Socket.ip_address_list.select { |address| address.ipv4_loopback? || address.ipv6_loopback? }

    assert_equal loopback.map(&:ip_address).uniq.sort, listeners.map { |listener| listener.address[:host] }.sort
    assert_equal 1, listeners.map(&:port).uniq.size
  end

  def test_any_ipv6_address_takes_ipv4_too
    skip "this machine has no IPv6" unless Socket.ip_address_list.any?(&:ipv6?)

    listener = open("tcp://[::]:0").first

    assert_equal "http://[::]:#{listener.port}", listener.to_s
    TCPSocket.open("127.0.0.1", listener.port, &:close)
    TCPSocket.open("::1", listener.port, &:close)
  end

  def test_a_star_is_any_host_and_still_the_address_as_it_was_written
    listener = open("tcp://*:0").first

    assert_equal Binding.any_host, listener.address[:host]
    assert_equal "tcp://*:0", listener.binding
    TCPSocket.open("127.0.0.1", listener.port, &:close)
  end

  def test_the_address_of_an_interface_may_have_a_zone
    address = Socket.ip_address_list.find(&:ipv6_linklocal?)
    skip "this machine has no link-local address" unless address

    assert_equal address.ip_address, open("tcp://[#{address.ip_address}]:0").first.address[:host]
  end

  def test_one_ipv6_address_takes_ipv6_only
    skip "this machine has no IPv6" unless Socket.ip_address_list.any?(&:ipv6_loopback?)

    port = open("tcp://[::1]:0").first.port

    assert_raises(Errno::ECONNREFUSED) { TCPSocket.open("127.0.0.1", port) }
  end

  def test_an_address_in_use_is_an_error
    port = open("tcp://127.0.0.1:0").first.port
    error = assert_raises(Fairlead::BindError) { Binding.parse("tcp://127.0.0.1:#{port}").open(backlog: 5) }

    assert_equal "cannot listen on tcp://127.0.0.1:#{port}: the address is in use", error.message
  end

  def test_an_address_of_another_machine_is_an_error
    error = assert_raises(Fairlead::BindError) { Binding.parse("tcp://192.0.2.1:0").open(backlog: 5) }

    assert_includes error.message, "no interface"
  end

  def test_a_host_that_nobody_knows_is_an_error
    assert_raises(Fairlead::BindError) { Binding.parse("tcp://host.invalid:0").open(backlog: 5) }
  end

  def test_the_port_can_be_listened_on_again_at_once
    listener = open("tcp://127.0.0.1:0").first
    client = TCPSocket.open("127.0.0.1", listener.port)
    accepted, = Socket.for_fd(listener.fileno).tap { |socket| socket.autoclose = false }.accept
    accepted.close # this side closes first, so the port is in TIME_WAIT
    listener.close
    @listeners += Binding.parse("tcp://127.0.0.1:#{listener.port}").open(backlog: 5)

    assert_equal listener.port, @listeners.last.port
  ensure
    client&.close
  end

  def test_answers_leave_without_delay
    socket = Socket.for_fd(open("tcp://127.0.0.1:0").first.fileno)
    socket.autoclose = false

    assert_equal true, socket.getsockopt(:TCP, :NODELAY).bool
  end

  def test_the_backlog_of_the_query_counts_more
    assert_equal 7, backlog_of(open("tcp://127.0.0.1:0?backlog=7&low_latency=true").first)
    assert_equal 5, backlog_of(open("tcp://127.0.0.1:0").first)
  end

  private

  def open(uri)
    (@listeners ||= []).concat(listeners = Binding.parse(uri).open(backlog: 5))
    listeners
  end

  # Linux reports the backlog of a listening socket as tcpi_sacked, the sixth number of TCP_INFO.
  def backlog_of(listener)
    socket = Socket.for_fd(listener.fileno)
    socket.autoclose = false
    socket.getsockopt(:TCP, :INFO).unpack("x8L*")[5]
  end
end
