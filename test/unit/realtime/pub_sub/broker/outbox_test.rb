# frozen_string_literal: true

require "test_helper"
require "stringio"

# Publications of several threads. The test decides when the broker confirms them.
class BrokerOutboxTest < Minitest::Test
  include Fairlead::Test::Waiting

  Broker = Fairlead::PubSub::Broker

  # A connection whose broker confirms a batch when the test says so.
  class Line
    attr_reader :batches, :answers

    def initialize
      @batches = Thread::Queue.new
      @answers = Thread::Queue.new
      @usable = true
    end

    def publish(batch, _seconds)
      @batches << batch.map(&:message)
      answer = @answers.pop
      answer.is_a?(Exception) ? raise(answer) : batch.map { |publication| answer[publication.message] }
    end

    def usable? = @usable

    def close
      @usable = false
    end
  end

  def setup
    @errors = StringIO.new
    Fairlead::Background.current.started(self, Fairlead::EventLog.new(output: StringIO.new, errors: @errors))
    @lines = []
    @counters = Broker::Counters.new
    @outage = Broker::Outage.new("the broker", @counters)
    @broker = Broker.new("the broker", patience: 5)
    @may_connect = true
    @outbox = Broker::Outbox.new(@broker, @outage, @counters) { connect }
  end

  def teardown
    @outbox.close
    Fairlead::Background.current.stopped(self)
  end

  def test_while_one_thread_sends_the_others_wait_and_then_go_together
    threads = [publish("0")]
    assert_equal ["0"], line.batches.pop
    threads += queue(%w[1 2 3])
    confirm

    assert_equal %w[1 2 3], line.batches.pop
    confirm
    assert_equal [true] * 4, threads.map(&:value)
    assert_equal [4, 0], %i[published lost].map { |name| @counters[name] }
  end

  def test_each_thread_gets_its_own_refusal
    refusal = Broker::Refused.new("not this one")
    threads = [publish("0")]
    line.batches.pop
    threads += queue(%w[1 2])
    confirm
    confirm("1" => refusal)

    assert_equal [true, refusal, true], threads.map(&:value)
    assert_equal [2, 1], %i[published refused].map { |name| @counters[name] }
  end

  def test_a_connection_that_fails_loses_what_waits_and_nothing_after_its_return
    threads = [publish("0")]
    line.batches.pop
    threads += queue(%w[1 2])
    @may_connect = false
    line.answers << IOError.new("broken")
    assert_equal [false] * 3, threads.map(&:value)
    assert_equal false, @outbox.publish("news", "meanwhile")
    assert_equal 4, @counters[:lost]

    @may_connect = true
    wait_until("its return") { @outage.none? }
    thread = publish("4")
    confirm
    assert_equal true, thread.value
    assert_equal [1, 4], %i[reconnects lost].map { |name| @counters[name] }
  end

  def test_a_thread_that_is_stopped_while_it_sends_delays_its_end_and_takes_nothing_from_others
    stopped = publish("0")
    line.batches.pop
    others = queue(%w[1 2])
    stopped.kill
    refute stopped.join(0.05)
    confirm
    confirm

    assert_equal [true, true], others.map(&:value)
    assert stopped.join(10)
  end

  def test_a_thread_that_is_stopped_while_it_waits_sends_nothing
    first = publish("0")
    line.batches.pop
    stopped, other = queue(%w[1 2])
    stopped.kill.join
    confirm
    confirm

    assert_equal [true, true], [first, other].map(&:value)
    assert_equal ["2"], line.batches.pop
  end

  def test_a_full_queue_makes_threads_wait_until_their_deadline
    @broker = Broker.new("the broker", patience: 0.2)
    @outbox = Broker::Outbox.new(@broker, @outage, @counters) { connect }
    first = publish("x" * Broker::Outbox::MOST_BYTES)
    line.batches.pop
    assert_equal false, @outbox.publish("news", "too much")
    confirm

    assert_equal true, first.value
    assert_match(/queue of publications is full; so far 1 /, @errors.string)
    assert_equal [1, 1, 1], %i[published lost waits].map { |name| @counters[name] }
  end

  def test_a_full_queue_takes_more_when_there_is_room
    first = publish("x" * Broker::Outbox::MOST_BYTES)
    line.batches.pop
    second = publish("more")
    wait_until("a wait") { @counters[:waits] == 1 }
    2.times { confirm }

    assert_equal [true, true], [first, second].map(&:value)
    assert_equal 0, @counters[:lost]
  end

  private

  def connect
    raise IOError, "not there" unless @may_connect

    Line.new.tap { |line| @lines << line }
  end

  # The newest connection.
  def line = wait_until("a connection") { @lines.last }

  def confirm(answers = {}) = line.answers << answers

  # Starts a thread that publishes; its value is the result, or the exception.
  def publish(message)
    Thread.new do
      @outbox.publish("news", message)
    rescue Broker::Refused => e
      e
    end
  end

  # Starts threads that wait behind another one, in this order.
  def queue(messages)
    messages.map { |message| publish(message).tap { |thread| wait_until("a thread") { thread.status == "sleep" } } }
  end
end
