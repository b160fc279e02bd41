# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# The number of concurrent requests, and of their threads.
class ThreadsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  # Holds each request until +together+ of them run, for +seconds+ at most; responds with the largest number of running
  # requests, its thread, and the number of threads.
  APP = <<~RUBY
    LOCK = Mutex.new
    RUNNING = [0, 0]
    run lambda { |env|
      together, seconds = env["QUERY_STRING"].split(",").map(&:to_i)
      LOCK.synchronize { RUNNING[0] += 1; RUNNING[1] = RUNNING.max }
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      sleep 0.005 until RUNNING[1] >= together || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      LOCK.synchronize { RUNNING[0] -= 1 }
      threads = Thread.list.count { |thread| thread.name.to_s.match?(/fairlead \\d/) }
      [200, {}, ["\#{RUNNING[1]} \#{Thread.current.name} \#{threads}"]]
    }
  RUBY

  # The first request runs until there is a file "go", and writes down the number of requests that wait behind it.
  IN_ORDER = <<~RUBY
    ORDER = []
    run lambda { |env|
      until env["PATH_INFO"] != "/first" || File.exist?("go")
        File.write("queued", Fairlead.stats[:engines].first[:queued])
        sleep 0.005
      end
      [200, {}, [(ORDER << env["PATH_INFO"]).join]]
    }
  RUBY

  def test_five_requests_run_at_once_on_five_threads
    server = serve(APP, "-t", 5)

    assert_equal 5, most_at_once(server, clients: 5, together: 5)
  end

  def test_no_more_run_at_once_than_there_are_threads
    server = serve(APP, "-t", 3)

    assert_equal 3, most_at_once(server, clients: 6, together: 4, seconds: 1)
  end

  def test_threads_are_started_when_they_are_needed_and_not_before
    server = serve(APP, "-t", "1:5")
    client = connect(server)
    quick = Array.new(30) { threads(client.get("/?0,0")) }

    assert_operator quick.max, :<=, 2
    assert_equal 5, most_at_once(server, clients: 10, together: 5)
    assert_equal 5, threads(client.get("/?0,0"))
  end

  def test_the_minimum_is_started_at_once
    server = serve(APP, "-t", "4:8")

    assert_equal 4, threads(get(server, "/?0,0"))
  end

  def test_one_thread_takes_one_request_at_a_time_in_the_order_of_arrival
    server = serve(IN_ORDER, "-t", 1)
    names = %w[/first /a /b /c /d]
    clients = names.each_with_index.map do |name, waiting|
      client = connect(server).request("GET", name)
      wait_until("#{name} to arrive") { queued(server) == waiting.to_s }
      client
    end
    server.write("go", "")

    assert_equal names.join, clients.map { |client| client.answer.body }.last
  end

  def test_a_thread_that_the_app_kills_is_replaced
    server = serve("run ->(env) { env['PATH_INFO'] == '/kill' ? Thread.current.kill : [200, {}, ['alive']] }", "-t", 2)
    5.times do
      assert_raises(Fairlead::Test::HttpClient::CutOff) { get(server, "/kill") }
    end

    assert_equal %w[alive] * 10, Array.new(10) { get(server).body }
  end

  # KILLED threads of the server are killed by the thread that makes them, before they begin.
  KILLED_AT_ONCE = <<~RUBY
    module Kills
      LEFT = (1..20).to_a
      def new(...) = super.tap { |thread| thread.kill if caller_locations.any? { |at| at.path.end_with?("fairlead/engine/threads.rb") } && LEFT.pop }
    end
    Thread.singleton_class.prepend(Kills)
    run ->(env) { [200, {}, [Kills::LEFT.size.to_s]] }
  RUBY

  def test_threads_that_are_killed_before_they_begin_are_replaced
    server = serve(KILLED_AT_ONCE, "-t", 2)

    wait_until("the last one", seconds: 60) { get(server).body == "0" }
    pass
  end

  # While a file "full" exists, the system cannot start another thread.
  FULL = <<~RUBY
    module Full
      def new(...)
        raise ThreadError, "can't create Thread: Resource temporarily unavailable" if File.exist?("full")
        super
      end
    end
    Thread.singleton_class.prepend(Full)
    run lambda { |env|
      next [200, {}, ["alive"]] unless env["PATH_INFO"] == "/kill"
      File.write("full", "")
      Thread.current.kill
    }
  RUBY

  def test_a_thread_that_cannot_be_replaced_at_once_is_replaced_later
    server = serve(FULL, "-t", 1)
    assert_raises(Fairlead::Test::HttpClient::CutOff) { get(server, "/kill") }
    wait_until("the log") { server.stderr.include?("cannot start a thread in place of one that has ended") }
    File.delete(server.path("full"))

    assert_equal "alive", get(server).body
  end

  def test_a_hook_that_keeps_every_thread_from_beginning_is_told_and_files_are_served
    server = serve("run ->(env) { [200, {}, []] }", "-t", 2, "-C", "hook.rb", "--public-dir", ".",
                   files: { "hook.rb" => "before_thread_start { sleep }", "file.txt" => "file" })
    wait_until("the log") { server.stderr.include?("no thread has begun to run requests for a second (2 are starting)") }

    assert_equal "file", get(server, "/file.txt").body
    assert_equal 0, server.stop.exitstatus
  end

  # The new thread may have begun by then, so it must not count as one that has failed to start.
  LATE = <<~'RUBY'
    module Late
      def add_thread
        super.tap do
          next if $late || !Thread.current.name.to_s.start_with?("fairlead ")

          $late = true
          ENV["LATE"] == "kill" ? Thread.current.kill : Thread.current.raise("late")
        end
      end
    end
    Fairlead::Engine.prepend(Late)
  RUBY

  # Each request blocks the next one, which therefore needs one more thread.
  NUMBERED = <<~'RUBY'
    run lambda { |env|
      File.write(env["PATH_INFO"].delete("/"), "") unless env["PATH_INFO"] == "/"
      sleep 0.005 until File.exist?("go")
      [200, {}, ["ok"]]
    }
  RUBY

  %w[raise kill].each do |late|
    define_method(:"test_a_#{late}_that_comes_while_a_thread_starts_another_one_costs_no_thread") do
      server = serve(NUMBERED, "-t", "0:5", files: { "config/fairlead.rb" => LATE }, environment: { "LATE" => late })
      clients = Array.new(4) do |number|
        connect(server).request("GET", "/#{number}").tap { wait_until("request #{number}") { File.exist?(server.path(number.to_s)) } }
      end
      server.write("go", "")
      clients.each { |client| end_of(client) }

      6.times { assert_equal 200, get(server).status }
      refute_match(/BUG|panicked/, server.stderr)
    end
  end

  private

  # An interrupted request may get a 500, or its connection is closed.
  def end_of(client)
    client.answer
  rescue Fairlead::Test::HttpClient::CutOff
    nil
  end

  def most_at_once(server, clients:, together:, seconds: 10)
    asked = Array.new(clients) { connect(server).request("GET", "/?#{together},#{seconds}") }
    asked.map { |client| client.answer.body.to_i }.max
  end

  # Number of waiting requests, or nil before the first one runs.
  def queued(server)
    path = server.path("queued")
    File.read(path) if File.exist?(path)
  end

  def threads(answer) = Integer(answer.body[/\d+\z/], 10)
end
