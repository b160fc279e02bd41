# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "timeout"

# Fairlead::Server#stop in places that it must not wait for: a request, a block that the engine runs, a trap. And
# interruptions of a stop that waits.
class StoppingTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  def teardown
    @server&.stop(0)
    super
  end

  def test_a_request_that_stops_the_server_is_answered_and_then_the_server_ends
    start(->(_) { [200, {}, [@server.stop(5).inspect]] })

    assert_equal "nil", connect(@server).get.body
    assert_ended
  end

  def test_a_server_that_starts_again_cuts_off_lost_streams
    lost = ->(stream) { Thread.new { stream.write("part"); Thread.current.kill } } # rubocop:disable Style/Semicolon
    2.times do
      start(->(_) { [200, {}, lost] })
      client = connect(@server).request("GET", "/")
      client.read_through("part\r\n")
      assert_empty client.rest
      client = connect(@server).request("GET", "/") # the server ends before it has read this one
      client.read_through("part\r\n")
      @server.stop(0)
    end
  end

  def test_other_requests_that_have_arrived_are_still_answered
    inside = Thread::Queue.new
    go_on = Thread::Queue.new
    start(->(env) { env["PATH_INFO"] == "/stop" ? [200, {}, [@server.stop(5).inspect]] : [200, {}, [inside << true && go_on.pop]] })
    other = connect(@server).request("GET", "/other")
    inside.pop
    connect(@server).get("/stop")
    go_on << "finished"

    assert_equal "finished", other.answer.body
    assert_ended
  end

  def test_a_deferred_block_can_stop_the_server
    start(->(_) { [200, {}, []] })
    result = Thread::Queue.new
    Fairlead.defer { result << @server.stop(5) }

    assert_nil popped(result)
    assert_ended
  end

  def test_a_trap_can_stop_the_server
    start(->(_) { [200, {}, []] })
    result = Thread::Queue.new
    previous = trap("USR2") do
      result << @server.stop(5)
    rescue ThreadError => e
      result << e
    end
    Process.kill(:USR2, Process.pid)

    assert_nil popped(result)
    assert_ended
  ensure
    trap("USR2", previous)
  end

  def test_a_request_of_another_server_waits_for_the_end
    start(->(_) { [200, {}, []] })
    stopper = Fairlead::Server.new(->(_) { [200, {}, [@server.stop(5).inspect]] }, bind: "tcp://127.0.0.1:0").start

    assert_equal "true", connect(stopper).get.body
    assert_raises(Errno::ECONNREFUSED) { connect(@server) }
  ensure
    stopper&.stop
  end

  def test_a_time_limit_ends_the_wait_with_its_own_exception
    in_a_request do
      assert_raises(Timeout::Error) { Timeout.timeout(0.2) { @server.stop(10) } }
    end
    assert_ended
  end

  def test_a_thread_that_waits_for_the_end_can_be_killed
    in_a_request do
      stopping = Thread.new { @server.stop(10) }
      wait_until("the end of accepting") { refuses? && stopping.status == "sleep" }
      stopping.kill

      assert_same stopping, stopping.join(5)
      assert_nil stopping.value
    end
    assert_ended
  end

  # The same without Server: its wait is in Ruby, the engine's is in the extension.
  def test_what_interrupts_the_wait_of_the_engine_is_passed_on
    in_a_request do
      engine = @server.instance_variable_get(:@life).instance_variable_get(:@engine)
      assert_raises(Timeout::Error) { Timeout.timeout(0.2) { engine.drain(10) } }
      waiting = Thread.new { engine.drain(10) }
      wait_until("the wait") { waiting.status == "sleep" }
      waiting.kill

      assert_same waiting, waiting.join(5)
      assert_nil waiting.value
    end
    @server.stop
  end

  private

  def start(app)
    @server = Fairlead::Server.new(app, bind: "tcp://127.0.0.1:0", threads: [0, 3]).start
    @waiting = Thread.new { @server.wait }
  end

  # Yields while a request is in the application.
  def in_a_request
    inside = Thread::Queue.new
    go_on = Thread::Queue.new
    start(->(_) { [200, {}, [inside << true && go_on.pop]] })
    client = connect(@server).request("GET", "/")
    inside.pop
    yield
    go_on << "finished"
    assert_equal "finished", client.answer.body
  end

  def popped(queue)
    wait_until("a result") { !queue.empty? }
    queue.pop
  end

  def refuses?
    connect(@server).close
    false
  rescue Errno::ECONNREFUSED
    true
  end

  def assert_ended
    assert_same @waiting, @waiting.join(5), "the server has not ended"
    assert_raises(Errno::ECONNREFUSED) { connect(@server) }
  end
end
