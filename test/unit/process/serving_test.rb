# frozen_string_literal: true

require "test_helper"
require "fairlead/process/serving"

class ServingTest < Minitest::Test
  # Notes what it is asked for. Its drain ends with #finish.
  class Engine
    attr_reader :calls

    def initialize
      @calls = Thread::Queue.new
      @finished = Thread::Queue.new
    end

    def drain(seconds, **how)
      @calls << [:drain, seconds, how]
      @finished.pop
    end

    def hurry(seconds, **how) = @calls << [:hurry, seconds, how]
    def finish = @finished << true
  end

  class Worker
    include Fairlead::Serving

    def initialize(engine, timeout)
      @engine = engine
      @service = Struct.new(:configuration).new(Struct.new(:shutdown_timeout).new(timeout))
      @signals = Thread::Queue.new
    end

    def ask(**how) = drain(**how)
    def join = @drain.join
  end

  def setup
    @engine = Engine.new
    @worker = Worker.new(@engine, 10)
  end

  def teardown
    @engine.finish
    @worker.join
  end

  def test_a_worker_that_is_replaced_notices_the_end_of_the_whole_server
    @worker.ask(migrate: true)
    assert_equal [:drain, 10, { delay: 0, stay: 0, migrate: true }], @engine.calls.pop
    @worker.ask(migrate: true)
    assert_empty @engine.calls
    @worker.ask(delay: 2, ending: [7])
    assert_equal [:hurry, 12, { migrate: false }], @engine.calls.pop

    2.times { @worker.ask }
    assert_empty @engine.calls
  end

  def test_a_long_drain_is_shortened_once
    @worker.ask(long: 60, migrate: true)
    assert_equal [:drain, 60, { delay: 0, stay: 60, migrate: true }], @engine.calls.pop
    2.times { @worker.ask(migrate: true) }

    assert_equal [:hurry, 10, { migrate: true }], @engine.calls.pop
    assert_empty @engine.calls
  end
end
