# frozen_string_literal: true

require "test_helper"
require "socket"

class ListenersTest < Minitest::Test
  include Fairlead::Test::Folders

  Listeners = Fairlead::Listeners

  def test_they_reach_the_engine_as_descriptors_with_addresses
    listeners = Listeners.open(["tcp://127.0.0.1:0", "tcp://127.0.0.1:0"], backlog: 5)

    assert_equal listeners.map { |listener| [listener.fileno, listener.address] }, listeners.to_engine
    assert_equal listeners.map(&:port), listeners.ports
  ensure
    listeners&.remove
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
