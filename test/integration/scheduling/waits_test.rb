# frozen_string_literal: true

require "test_helper"
require "support/board_file"
require "support/http_client"
require "support/rack_apps"

# Waits of a request, as the application, the log and the statistics show them: for a thread, for the waiting room, for the
# GVL.
class WaitsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  SETUP = <<~'RUBY'
    NAMES = %w[queue_time waiting_room_time lock_wait].freeze
    QUEUE = Queue.new
    BACK = Queue.new

    def waits(env) = NAMES.map { |name| env.fetch("fairlead.#{name}").call }

    def hold(seconds, &condition)
      Notes.add("holds")
      sleep 0.005 until condition.call
      sleep seconds
    end

    def compute(seconds)
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
    end
  RUBY

  TELL = "[200, { 'content-type' => 'application/json' }, [JSON.generate(waits(env))]]"

  def test_a_request_that_waits_for_the_only_thread_says_how_long
    server = serve(app('hold(0.3) { Fairlead.stats[:engines].first[:queued] == 1 } if env["PATH_INFO"] == "/first"'), "-t", 1,
                   "--access-log", "access.log", "--access-log-format", "%U %{queue_time}W %{waiting_room_time}W")
    first, second = first_and_second(server)

    assert_operator second[0], :>=, 0.3
    assert_operator first[0], :<, second[0] / 2
    assert_equal [0.0, 0.0], [first[1], second[1]]
    assert_equal ["/first", format("%.6f", first[0]), "0.000000"], log(server, 2).first.split
    assert_equal ["/second", format("%.6f", second[0]), "0.000000"], log(server, 2).last.split
  end

  def test_a_request_that_no_worker_can_run_says_how_long_it_was_in_the_waiting_room
    # One of the first two may go through the waiting room as well; once both have written a note, only /second can be in it.
    server = serve(app(<<~RUBY), "-w", 2, "-t", 1)
      hold(0.3) { File.readlines("notes").size == 2 && Fairlead.stats[:room][:waiting] == 1 } if env["PATH_INFO"] == "/first"
    RUBY
    holders = Array.new(2) { connect(server).request("GET", "/first") }
    wait_for_notes(server, 2)
    queue, room, = JSON.parse(get(server, "/second").body)

    assert_operator room, :>=, 0.3
    assert_operator queue, :<, room
    holders.each { |holder| assert_equal 200, holder.answer.status }
    counted = JSON.parse(get(server, "/stats").body)["waits"]

    assert_equal 3, counted["queue_time"]["count"]
    # One of the first two may have gone through it as well, to get to the other worker.
    assert_includes 1..2, counted["waiting_room_time"]["count"]
    assert_operator counted["waiting_room_time"]["seconds"], :>=, room
  end

  def test_the_waits_of_a_request_are_not_those_of_the_one_before
    server = serve(app('hold(0.3) { Fairlead.stats[:engines].first[:queued] == 1 } if env["PATH_INFO"] == "/first"'), "-t", 1)
    first = connect(server).request("GET", "/first")
    wait_for_notes(server, 1)
    client = connect(server)

    assert_operator JSON.parse(client.get("/second").body).first, :>=, 0.3
    assert_operator JSON.parse(client.get("/second").body).first, :<, 0.15
    assert_equal 200, first.answer.status
  end

  def test_the_statistics_count_each_request_of_the_application_and_none_for_a_file
    server = serve(app(""), "-t", 1, "--public-dir", "public", files: { "public/file" => "text" })
    client = connect(server)
    20.times { client.get("/") }
    5.times { client.get("/file") }
    stats = JSON.parse(client.get("/stats").body)
    engine = stats["engines"].first

    assert_equal [25, 5], engine.values_at("requests", "files")
    assert_equal [20, 0, lock? ? 20 : 0], stats["waits"].values.map { |histogram| histogram["count"] }
    assert_equal engine.slice("queue_time", "waiting_room_time", "lock_wait"), stats["waits"]
    stats["waits"].each_value do |histogram|
      assert_equal histogram["buckets"].values.sort, histogram["buckets"].values
      assert_operator histogram["buckets"]["10.0"], :<=, histogram["count"]
    end
  end

  def test_the_histograms_of_a_worker_outlive_it
    server = serve(app(""), "-w", 2, "-t", 1, "-C", "board.rb", files: { "board.rb" => Fairlead::Test::BoardFile::SCRIPT })
    20.times { get(server, "/") }
    before = server.worker_pids
    before.each { |pid| Process.kill(:KILL, pid) }
    wait_until("other workers") { server.worker_pids.size == 2 && !server.worker_pids.intersect?(before) }
    5.times { get(server, "/") }
    board = Fairlead::Test::BoardFile.new(server)

    wait_until("all of them") { board["waits"]["queue_time"]["count"] == 25 }
    wait_until("the counts of the remaining workers") { board["workers"].sum { |worker| worker["queue_time"]["count"] } == 5 }
    assert_equal 25, board["waits"]["queue_time"]["count"]
  end

  def test_a_neighbour_that_computes_is_felt_at_the_lock
    server = serve(app(<<~RUBY), "-t", 1)
      computing = true
      neighbour = Thread.new { nil while computing } if env["PATH_INFO"] == "/crowded"
      10.times { sleep 0.002 }
      told = waits(env).last
      computing = false
      neighbour&.join
      next [200, {}, [JSON.generate(told)]]
    RUBY
    alone, crowded = %w[/alone /crowded].map { |path| JSON.parse(get(server, path).body) }

    return assert_equal [nil, nil], [alone, crowded] unless lock?

    assert_operator alone, :<, crowded / 10
  end

  # From Ruby 3.3 on, Ruby reports the woken thread's wish for the lock in the thread that wakes it.
  def test_a_wait_for_another_thread_is_no_wait_for_the_lock
    server = serve(app(<<~RUBY), "-t", 2)
      case env["PATH_INFO"]
      when "/pop"
        Notes.add("pops")
        QUEUE.pop
        sleep 0.5
        BACK.push(1)
      when "/push"
        QUEUE.push(1)
        BACK.pop
      end
      next [200, {}, [JSON.generate(waits(env).last)]]
    RUBY
    waits = pop_and_push(server)

    return assert_equal [nil, nil], waits unless lock?

    assert_operator waits.max, :<, 0.25
  end

  def test_who_is_woken_by_a_thread_that_goes_on_waits_for_the_lock
    server = serve(app(<<~RUBY), "-t", 2)
      case env["PATH_INFO"]
      when "/pop"
        Notes.add("pops")
        QUEUE.pop
      when "/push"
        QUEUE.push(1)
        compute(0.05)
      end
      next [200, {}, [JSON.generate(waits(env).last)]]
    RUBY
    waits = Array.new(10) { |round| pop_and_push(server, round) }

    return assert_equal [[nil, nil]], waits.uniq unless lock?

    # A slice ends by the clock, so little of it may be left; but a thread keeps the lock for at least a millisecond.
    assert_operator waits.map(&:last).max, :>, 0.0005, "shortest time with the lock"
  end

  def test_they_are_told_to_the_thread_of_the_request_and_to_no_other
    server = serve(app(<<~RUBY), "-t", 1)
      env["rack.response_finished"] << ->(env, *) { Notes.add(waits(env).map(&:class).inspect) }
      elsewhere = Thread.new { waits(env) }.value
      reader, writer = IO.pipe
      Process.wait(fork { writer.write(waits(env).inspect) || exit!(0) })
      writer.close
      next [200, {}, [JSON.generate([elsewhere, reader.read])]]
    RUBY
    answer = JSON.parse(get(server, "/").body)

    assert_equal [[nil, nil, nil], "[nil, nil, nil]"], answer
    assert_equal [["Float", "Float", lock? ? "Float" : "NilClass"]], wait_for_notes(server, 1).map { |note| note.scan(/\w+/) }
  end

  def test_a_request_in_a_fiber_of_its_own_has_them_too
    server = serve(app("10.times { sleep 0.001 }"), "-t", 1, "--fiber-per-request")
    classes = JSON.parse(get(server, "/").body).map(&:class)

    assert_equal [Float, Float, lock? ? Float : NilClass], classes
  end

  private

  # Returns true if this Ruby reports the waits for its lock.
  def lock? = RUBY_VERSION >= "3.2"

  def app(code)
    unlinted("next [200, {}, [JSON.generate(Fairlead.stats)]] if env['PATH_INFO'] == '/stats'\n#{code}\n#{TELL}",
             setup: SETUP)
  end

  # Returns the waits of a request that holds the thread, and of a second one that comes in this time.
  def first_and_second(server)
    first = connect(server).request("GET", "/first")
    wait_for_notes(server, 1)
    second = get(server, "/second")
    [first.answer, second].map { |answer| JSON.parse(answer.body) }
  end

  # Returns the waits of a request for /push, which wakes one for /pop, and the waits of the latter. +before+: number of
  # earlier calls.
  def pop_and_push(server, before = 0)
    popping = connect(server).request("GET", "/pop")
    wait_for_notes(server, before + 1)
    [get(server, "/push"), popping.answer].map { |answer| JSON.parse(answer.body) }
  end

  def log(server, count)
    wait_until("#{count} lines") do
      lines = File.exist?(server.path("access.log")) ? File.readlines(server.path("access.log")) : []
      lines if lines.size >= count
    end
  end
end
