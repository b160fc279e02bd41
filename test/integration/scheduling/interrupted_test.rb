# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"
require "support/needed_gems"

# Interrupts for a computing thread while its time slices end again and again: none is lost, none comes at the wrong time,
# and the application cannot tell that the thread had lost the lock. Two computing clients want the lock all the time. A
# request that loses its timeout would run until the server is killed, far beyond every deadline.
class InterruptedTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::NeededGems

  APP = <<~'RUBY'
    require "timeout"
    # Here, because a thread that loads a gem gives up the lock more than a thousand times.
    begin; require "stackprof"; rescue LoadError; end
    class Wanted < RuntimeError; end

    $stop = false

    # Computes for so many seconds: many slices.
    def compute(seconds = 0.06)
      ending = now + seconds
      nil while now < ending
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Starts a thread that calls the block with a function, which the block calls before it computes. Returns after some
    # slices.
    def computing
      begun = Thread::Queue.new
      thread = Thread.new { yield -> { begun << true } }
      thread.report_on_exception = false
      begun.pop
      compute(0.02)
      thread
    end

    ROUNDS = 5

    CASES = {
      "/compute" => -> { nil until $stop },
      "/stop" => -> { $stop = true },
      "/slices" => -> { Fairlead.stats[:engines].sum { |engine| engine[:time_slices] } },

      "/timeout" => lambda {
        Array.new(ROUNDS) do
          Timeout.timeout(0.02) { loop { nil } }
        rescue Timeout::Error
          "out"
        end.uniq
      },
      "/raise" => lambda {
        Array.new(ROUNDS) do
          thread = computing { |begins| begins.call; loop { nil } }
          thread.raise(Wanted, "wanted")
          thread.join rescue $!.message
        end.uniq
      },
      "/raise-in-request" => lambda {
        request = Thread.current
        Thread.new { sleep 0.02; request.raise(Wanted, "wanted") }
        loop { nil }
      },
      "/kill" => lambda {
        Array.new(ROUNDS) do
          ensured = []
          thread = computing { |begins| begin; begins.call; loop { nil }; ensure; ensured << "ensured"; end }
          [thread.kill.join.status, *ensured]
        end.uniq
      },
      "/kill-request" => lambda {
        request = Thread.current
        Thread.new { sleep 0.02; request.kill }
        loop { nil }
      },
      "/masked" => lambda {
        Array.new(ROUNDS) do
          order = []
          is_raised = false
          thread = computing do |begins|
            Thread.handle_interrupt(Wanted => :never) { begins.call; nil until is_raised; compute; order << "masked" }
            order << "never"
          rescue Wanted
            order << "raised"
          end
          thread.raise(Wanted)
          is_raised = true
          thread.join
          order
        end.uniq
      },
      "/on-blocking" => lambda {
        Array.new(ROUNDS) do
          order = []
          is_raised = false
          thread = computing do |begins|
            Thread.handle_interrupt(Wanted => :on_blocking) do
              begins.call
              nil until is_raised
              compute
              order << "computed"
              sleep
            rescue Wanted
              order << "raised"
            end
          end
          thread.raise(Wanted)
          is_raised = true
          thread.join
          order
        end.uniq
      },
      "/throw" => -> { Array.new(ROUNDS) { catch(:out) { compute(0.02); throw :out, "thrown" } }.uniq },
      "/error-info" => lambda {
        begin
          raise Wanted, "kept"
        rescue Wanted
          compute
          $!.message
        end
      },
      "/fibers" => lambda {
        numbers = Enumerator.new { |to| 5.times { |n| compute(0.01); to << n } }
        Array.new(5) { compute(0.01); numbers.next }.sum
      },
      "/fork" => lambda {
        Array.new(ROUNDS) { compute(0.01); Process.wait2(fork { compute(0.03); exit!(3) }).last.exitstatus }.uniq
      },
      "/mutex" => lambda {
        lock = Mutex.new
        count = 0
        Array.new(4) { Thread.new { 20.times { lock.synchronize { before = count; compute(0.001); count = before + 1 } } } }.each(&:join)
        count
      },
      "/trap" => lambda {
        done = Thread::Queue.new
        before = trap("USR2") { compute; done << "trapped" }
        Process.kill(:USR2, Process.pid)
        trapped = done.pop
        trap("USR2", before)
        trapped
      },
      "/finalizers" => lambda {
        count = 0
        50.times { 20.times { ObjectSpace.define_finalizer(Object.new, proc { count += 1 }) }; compute(0.001); GC.start }
        compute
        count >= 900
      },
      "/profile" => lambda {
        StackProf.run(mode: :wall, interval: 1000) { compute(0.2) }[:samples] >= 20
      }
    }

    run lambda { |env| [200, {}, [[*CASES.fetch(env["PATH_INFO"]).call].join(" ")]] }
  RUBY

  EXPECTED = {
    "/timeout" => "out", "/raise" => "wanted", "/kill" => "false ensured", "/masked" => "masked raised",
    "/on-blocking" => "computed raised", "/throw" => "thrown", "/error-info" => "kept", "/fibers" => "10", "/fork" => "3",
    "/mutex" => "80", "/trap" => "trapped", "/finalizers" => "true",
    "/profile" => "true"
  }.freeze

  EXPECTED.each do |path, expected|
    define_method(:"test_#{path.delete("/").tr("-", "_")}") do
      needs_gems("stackprof") if path == "/profile"
      while_others_compute { |server| assert_equal expected, get(server, path).body }
    end
  end

  def test_an_exception_in_a_request_that_computes
    while_others_compute do |server|
      5.times { assert_equal 500, get(server, "/raise-in-request").status }
      assert_equal 5, server.stderr.scan(/wanted \(Wanted\)/).size
    end
  end

  def test_a_request_that_computes_is_killed
    while_others_compute do |server|
      5.times { assert_predicate connect(server).request("GET", "/kill-request"), :closed? }
    end
  end

  private

  def while_others_compute(*arguments)
    server = serve(APP, "-t", "5:5", *arguments)
    computing = Array.new(2) { connect(server).request("GET", "/compute") }
    yield server
    get(server, "/stop")
    assert_equal [200, 200], computing.map { |client| client.answer.status }
    assert_operator Integer(get(server, "/slices").body, 10), :>, 5
  end
end
