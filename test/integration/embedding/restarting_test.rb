# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"
require "timeout"

# Fairlead::Server that starts again after its end, and one with a failing start.
class RestartingTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  TIMES = 50

  # Hooks cannot be removed, so all tests share one.
  AT_NEXT_BOOT = [] # rubocop:disable Style/MutableConstant
  Fairlead.on(:boot) { AT_NEXT_BOOT.shift&.call }

  def teardown
    @server&.stop(0)
    super
  end

  def test_a_server_can_start_and_stop_many_times_and_leaves_no_thread_and_no_descriptor_behind
    server = make(access_log: File::NULL, log: (lines = Thread::Queue.new))
    start_and_stop(server)
    assert_nothing_grows do
      TIMES.times { start_and_stop(server) }
    end
    assert_equal TIMES + 1, lines.size.times.count { lines.pop.start_with?("listening on") }
  end

  def test_so_can_servers_that_are_made_anew
    start_and_stop(make(log: []))
    assert_nothing_grows do
      TIMES.times { start_and_stop(make(log: [])) }
    end
  end

  def test_a_start_while_it_ends_waits_for_the_end
    inside = Thread::Queue.new
    go_on = Thread::Queue.new
    server = make(bind: "tcp://127.0.0.1:#{free_port}") { inside << true && go_on.pop }
    client = connect(server.start).request("GET", "/")
    inside.pop
    assert_nil server.stop(10, wait: false)
    starting = Thread.new { server.start }
    wait_until("the wait") { starting.status == "sleep" }
    go_on << "one"
    go_on << "two"

    assert_equal "one", client.answer.body
    assert_same server, starting.value
    assert_equal "two", get(server).body
  end

  def test_a_second_start_is_an_error_and_the_server_goes_on
    server = make { "on" }.start

    error = assert_raises(Fairlead::Error) { server.start { flunk } }
    assert_equal "the server runs already", error.message
    assert_raises(Fairlead::Error) { server.listen }
    assert_equal [true, "on"], [server.running?, get(server).body]
  end

  def test_before_its_start_and_after_its_end_it_can_be_asked_anything
    server = make
    before = [server.running?, server.ports, server.port, server.addresses, server.stats, server.stop, server.inside?, server.wait]
    server.start
    during = [server.running?, server.connected_ports == [server.port]]
    server.stop

    assert_equal [false, [], nil, [], {}, true, false, server], before
    assert_equal [[true, true], false, true], [during, server.running?, server.stop]
  end

  def test_what_listens_is_served_once_it_is_started
    server = make { "late" }.listen
    client = connect(server).request("GET", "/")
    refute client.readable?(0.05)
    server.start

    assert_equal "late", client.answer.body
  end

  def test_what_listens_can_be_stopped_without_a_start
    server = make.listen

    assert_equal true, server.stop
    assert_raises(Errno::ECONNREFUSED) { connect(server) }
    assert_equal "hello", get(server.start).body
  end

  def test_a_stop_in_a_hook_of_its_start_ends_it_once_it_has_started
    server = make
    result = :none
    at_next_boot { result = server.stop(5) }
    server.start.wait

    assert_equal [nil, false], [result, server.running?]
  end

  def test_a_stop_in_another_thread_waits_for_the_start
    server = make
    stopping = nil
    at_next_boot do
      stopping = Thread.new { server.stop(5) }
      wait_until("the wait") { stopping.status == "sleep" }
    end
    server.start

    assert_equal [true, false], [stopping.value, server.running?]
  end

  def test_a_callback_that_raises_leaves_no_server
    [-> { raise "no" }, -> { raise Fairlead::BindError.new("a", "b") }, -> { throw :away }].each do |callback|
      server = make
      catch(:away) { assert_raises(RuntimeError, Fairlead::BindError) { server.start { callback.call } } }

      assert_equal false, server.running?
      assert_raises(Errno::ECONNREFUSED) { connect(server) }
    end
  end

  def test_a_start_that_fails_halfway_leaves_nothing
    server = make(log: [])
    start_and_stop(server)
    assert_nothing_grows do
      failing = ->(*) { raise ThreadError, "no more threads" }
      5.times { swapped(Fairlead::Background.current, :started, failing) { assert_raises(ThreadError) { server.start } } }
      assert_raises(Errno::ECONNREFUSED) { connect(server) }
    end
    assert_equal "hello", get(server.start).body
  end

  def test_an_address_in_use_is_told_to_the_caller_and_the_next_start_works
    port = free_port
    taken = TCPServer.new("127.0.0.1", port)
    server = make(bind: "tcp://127.0.0.1:#{port}")

    error = assert_raises(Fairlead::BindError) { server.start }
    assert_equal "cannot listen on tcp://127.0.0.1:#{port}: the address is in use", error.message
    taken.close
    assert_equal "hello", get(server.start).body
  end

  private

  def at_next_boot(&block) = AT_NEXT_BOOT << block

  def make(bind: "tcp://127.0.0.1:0", **options)
    @server = Fairlead::Server.new(->(_) { [200, {}, [block_given? ? yield : "hello"]] }, bind: bind, threads: [0, 3], **options)
  end

  def start_and_stop(server)
    client = connect(server.start)
    assert_equal "hello", client.get.body
    client.close
    assert_equal true, server.stop
  end

  # Compares threads, native ones included, and descriptors. One new server may be left, because the collector can take a
  # word on the stack for a reference to it. If every server left something, the counts would be much higher.
  def assert_nothing_grows
    Timeout.timeout(60) { nil } # starts its own thread
    before = counts
    yield
    wait_until("the counts from before: #{before}, now #{counts}") do
      GC.start
      counts.zip(before).all? { |now, earlier| now - earlier < TIMES / 5 }
    end
    pass
  end

  def counts = [Thread.list.size, Dir.children("/proc/self/task").size, descriptors(Process.pid)]

  def free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

  # Replaces a method of an object during the block.
  def swapped(object, name, replacement)
    object.define_singleton_method(name, replacement)
    yield
  ensure
    object.singleton_class.remove_method(name)
  end
end
