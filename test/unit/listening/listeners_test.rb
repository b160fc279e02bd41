# frozen_string_literal: true

require "test_helper"
require "socket"

class ListenersTest < Minitest::Test
  include Fairlead::Test::Folders

  Listeners = Fairlead::Listeners

  def test_they_reach_the_engine_as_descriptors_with_addresses
    listeners = Listeners.open(["tcp://127.0.0.1:0", "tcp://127.0.0.1:0"], backlog: 5)

    assert_equal listeners.map { |listener| [listener.fileno, listener.address, nil, nil] }, listeners.to_engine
    assert_equal listeners.map(&:port), listeners.ports
  ensure
    listeners&.remove
  end

  # Of struct tcp_info: the sixth of its 32-bit numbers is the length of a listener's queue.
  def waiting_connections(listener)
    socket = Socket.for_fd(listener.fileno)
    socket.autoclose = false
    socket.getsockopt(:TCP, :INFO).unpack("x8L6").last
  end

  def test_without_a_number_as_many_connections_wait_as_the_system_allows
    queries = ["", "?backlog=7"]
    listeners = Listeners.open(queries.map { |query| "tcp://127.0.0.1:0#{query}" }, backlog: 0)
    system = [Fairlead::Backlog.limit, Fairlead::Backlog::MOST].min

    assert_equal [system, 7], listeners.map { |listener| waiting_connections(listener) }
  ensure
    listeners&.remove
  end

  def test_they_tell_the_engine_what_connections_begin_with
    words = ["?proxy_protocol=v1", "?backlog=7&proxy_protocol=any", "?proxy_protocol=none", ""]
    listeners = Listeners.open(words.map { |query| "tcp://127.0.0.1:0#{query}" }, backlog: 5)

    assert_equal ["v1", "any", nil, nil], listeners.to_engine.map(&:last)
    assert_equal ["v1", "any", nil, "v2"], listeners.to_engine(proxy_protocol: "v2").map(&:last)
    assert_equal(words.map { |query| "tcp://127.0.0.1:0#{query}" }, listeners.map(&:known_as))
  ensure
    listeners&.remove
  end

  # The address of the new server counts, not the program that opened the socket.
  def test_an_inherited_listener_takes_what_its_new_address_says
    in_folder do
      old = Listeners.open(["unix://app.sock?proxy_protocol=v1"], backlog: 5).first
      [["v2", "?proxy_protocol=v2"], [nil, ""]].each do |expected, query|
        inherited = Fairlead::Inherited.new([old])
        listener = Listeners.open(["unix://app.sock#{query}"], backlog: 5, inherited: inherited).first

        assert_same old, listener
        assert_equal [expected], [listener.proxy_protocol]
      end
      old.remove
    end
  end

  def test_a_listener_begins_with_one_of_a_few_words
    ["tcp://127.0.0.1:0", "unix://app.sock"].each do |address|
      error = assert_raises(Fairlead::BindError) { Fairlead::Binding.parse("#{address}?proxy_protocol=v3") }
      assert_match(/proxy_protocol must be v1, v2, any or none, not v3/, error.message)
    end
  end

  def test_when_one_cannot_be_opened_none_stays_open
    in_folder do
      assert_raises(Fairlead::BindError) { Listeners.open(["unix://app.sock", "tcp://192.0.2.1:0"], backlog: 5) }
      refute_path_exists "app.sock"
    end
  end

  def test_removing_them_stops_listening_and_removes_the_files
    in_folder do
      listeners = Listeners.open(["unix://app.sock", "tcp://127.0.0.1:0"], backlog: 5)
      port = listeners.ports.first
      2.times { listeners.remove }

      refute_path_exists "app.sock"
      assert_raises(Errno::ECONNREFUSED) { TCPSocket.open("127.0.0.1", port) }
    end
  end
end
