# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"
require "support/web_socket"

# A computing thread passes the GVL on after a slice: to requests with many short waits, for every kind of computation. The
# test compares counts of one run, with slices and without, never times.
class TimeSlicesTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  # Computing code runs until there is a request for /stop, and calls nothing that releases the lock.
  APP = <<~RUBY
    $stop = false
    COMPUTE = lambda do
      warn("computes")
      nil until $stop
    end

    class Handler
      def on_message(client, _) = client.write(COMPUTE.call.to_s)
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/wait" then 5.times { sleep 0.001 }
      when "/compute" then COMPUTE.call
      when "/thread" then Thread.new(&COMPUTE)
      when "/defer" then Fairlead.defer(&COMPUTE)
      when "/stop" then $stop = true
      when "/slices" then next [200, {}, [Fairlead.stats[:engines].sum { |engine| engine[:time_slices] }.to_s]]
      when "/socket"
        env["rack.upgrade"] = Handler.new
        next [101, {}, []]
      end
      [200, {}, []]
    }
  RUBY

  def test_requests_that_wait_get_their_turns_while_one_computes
    assert_more_turns { |server| connect(server).request("GET", "/compute") }
  end

  def test_requests_that_wait_get_their_turns_while_a_thread_of_the_application_computes
    skip "Ruby 3.1 does not report the state of such a thread" if RUBY_VERSION < "3.2"

    assert_more_turns { |server| connect(server).get("/thread") }
  end

  def test_requests_that_wait_get_their_turns_while_a_handler_of_a_websocket_computes
    assert_more_turns { |server| web_socket(server).send_text("go") }
  end

  def test_requests_that_wait_get_their_turns_while_a_deferred_block_computes
    assert_more_turns { |server| connect(server).get("/defer") }
  end

  def test_requests_that_wait_get_their_turns_in_a_fiber_of_their_own
    assert_more_turns("--fiber-per-request") { |server| connect(server).request("GET", "/compute") }
  end

  def test_as_many_as_there_are_threads_compute_and_another_request_gets_its_turn
    with, without = [[], ["--time-slice", 0]].map do |arguments|
      turns(serve(APP, "-t", "4:4", *arguments)) do |server|
        3.times { connect(server).request("GET", "/compute") }
        server.wait_for_output(/(computes.*){3}/m)
      end
    end

    assert_operator with, :>=, 5 * without
  end

  def test_who_computes_alone_is_left_in_peace
    server = serve(APP, "-t", "5:5")
    client = connect(server).request("GET", "/compute")
    server.wait_for_output(/computes/)
    before = processor_time(server.serving_pid)
    wait_until("many slices of computing") { processor_time(server.serving_pid) - before > 0.3 }
    get(server, "/stop")

    assert_equal 200, client.answer.status
    # The other requests that wanted the lock are /stop and /slices.
    assert_operator Integer(get(server, "/slices").body, 10), :<=, 2
  end

  def test_a_server_without_slices_takes_the_lock_from_nobody
    server = serve(APP, "-t", "2:2", "--time-slice", 0)
    turns(server) { connect(server).request("GET", "/compute") }

    assert_equal "0", get(server, "/slices").body
  end

  private

  # Asserts five times as many turns with slices as without, while the code that the block starts computes.
  def assert_more_turns(*arguments, &block)
    with, without = [[], ["--time-slice", 0]].map { |slice| turns(serve(APP, "-t", "3:3", *slice, *arguments), &block) }

    assert_operator with, :>=, 5 * without
  end

  # Starts the computation; returns the number of waiting requests with a response within a second and a half.
  def turns(server)
    yield server
    server.wait_for_output(/computes/)
    client = connect(server)
    ending = monotonic + 1.5
    count = 0
    while monotonic < ending
      assert_equal 200, client.get("/wait").status
      count += 1
    end
    get(server, "/stop")
    count
  end

  def web_socket(server) = Fairlead::Test::WebSocket.connect("127.0.0.1", server.port, "/socket")
end
