# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "stringio"

# Several servers in one program: each with its own addresses, application and options, started and stopped together.
class GroupTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Folders

  ANY = "tcp://127.0.0.1:0"

  def teardown
    @group&.stop(0)
    super
  end

  def test_each_has_its_application_its_options_and_all_its_addresses
    group = make(environment: "production")
    api = group.add(app("api"), bind: [ANY, "tcp://127.0.0.2:0"], server_header: "api/1")
    admin = group.add(app("admin"), bind: ANY, environment: "development")
    group.start

    assert_equal(%w[api api admin], group.ports.zip(%w[127.0.0.1 127.0.0.2 127.0.0.1]).map { |port, host| body(host, port) })
    assert_equal ["api/1", nil], [get(api), get(admin)].map { |response| response["server"] }
    assert_equal [false, true], [api, admin].map { |server| get(server, "/raise").body.include?("oops") }
    assert_equal [group.ports, api.addresses + admin.addresses], [group.connected_ports, group.addresses]
  end

  def test_the_callback_comes_once_the_last_one_serves
    group = make
    2.times { |n| group.add(app(n.to_s), bind: ANY) }
    seen = Thread::Queue.new
    thread = Thread.new { group.run { |all| seen << all.servers.map { |server| get(server).body } } }

    assert_equal %w[0 1], seen.pop
    assert_equal [true, true], [group.running?, group.stop]
    assert_same group, thread.value
    assert_equal false, group.running?
  end

  def test_if_one_cannot_listen_none_has_served
    taken = TCPServer.new("127.0.0.1", 0)
    called = Thread::Queue.new
    group = make
    first = group.add(->(_) { called << true && [200, {}, []] }, bind: ANY)
    group.add(app("second"), bind: "tcp://127.0.0.1:#{taken.addr[1]}")

    assert_raises(Fairlead::BindError) { group.start { flunk } }
    assert_raises(Errno::ECONNREFUSED) { connect(first) }
    taken.close
    assert_equal "second", get(group.start.servers.last).body
    assert_empty called
  end

  def test_one_that_runs_already_goes_on_and_the_others_do_not_start
    group = make
    first = group.add(app("first"), bind: ANY)
    second = group.add(app("second"), bind: ANY).start

    assert_raises(Fairlead::Error) { group.start }
    assert_equal [false, "second"], [first.running?, get(second).body]
  end

  def test_a_callback_that_raises_stops_them_all
    group = make
    servers = Array.new(2) { |n| group.add(app(n.to_s), bind: ANY) }

    assert_raises(RuntimeError) { group.start { raise "no" } }
    servers.each { |server| assert_raises(Errno::ECONNREFUSED) { connect(server) } }
  end

  # Each takes a second for the requests, and one more for the threads that do not end.
  def test_they_stop_at_the_same_time
    group = make
    inside = Thread::Queue.new
    3.times { group.add(->(_) { inside << true && sleep }, bind: ANY) }
    group.start.servers.each { |server| connect(server).request("GET", "/") }
    3.times { inside.pop }

    took = seconds_of { assert_equal false, group.stop(1) }
    assert_operator took, :<, 3.5
  end

  def test_it_is_told_whether_requests_were_finished_even_of_the_first_that_ended
    group = make
    inside = Thread::Queue.new
    group.add(->(_) { inside << true && sleep }, bind: ANY, shutdown_timeout: 0.1)
    group.add(app("quick"), bind: ANY)
    connect(group.start.servers.first).request("GET", "/")
    inside.pop

    assert_equal [false, true], [group.stop, group.start.stop]
  end

  def test_a_request_of_one_and_a_trap_can_stop_them_all
    group = make
    group.add(->(_) { [200, {}, [group.stop(5).inspect]] }, bind: ANY)
    group.add(app("other"), bind: ANY)
    assert_equal "nil", get(group.start.servers.first).body
    group.wait

    group.start
    previous = trap("USR2") { group.stop(5) }
    Process.kill(:USR2, Process.pid)
    assert_same group, group.wait
  ensure
    trap("USR2", previous) if previous
  end

  def test_a_server_may_have_a_log_of_its_own_by_either_name
    shared = StringIO.new
    logs = Array.new(2) { StringIO.new }
    @group = group = Fairlead::Group.new(logger: shared)
    group.add(app("one"), bind: ANY, log: logs[0])
    group.add(app("two"), bind: ANY, logger: logs[1])
    group.start

    assert_equal [1, 1, 0], [*logs, shared].map { |log| log.string.scan("listening on").size }
  end

  def test_access_logs_that_were_moved_can_be_reopened
    in_folder do
      group = make
      group.add(app("one"), bind: ANY, access_log: "access.log")
      group.add(app("two"), bind: ANY)
      group.start.servers.each { |server| get(server, "/before") }
      wait_until("the line") { File.read("access.log").include?("/before") }
      File.rename("access.log", "access.log.1")

      assert_equal [true, [true, false]], [group.reopen_logs, group.servers.map(&:reopen_logs)]
      get(group.servers.first, "/after")
      wait_until("the line") { File.read("access.log").include?("/after") }
    end
  end

  def test_it_need_not_wait
    group = make
    group.add(app("one"), bind: ANY)

    assert_nil group.start.stop(wait: false)
    group.wait
    assert_equal false, group.running?
  end

  private

  def make(**options) = @group = Fairlead::Group.new(**options, log: StringIO.new)

  def app(name) = ->(env) { env["PATH_INFO"] == "/raise" ? raise("oops") : [200, {}, [name]] }

  def body(host, port) = adopt(TCPSocket.new(host, port)).get.body
end
