# frozen_string_literal: true

require "test_helper"
require "redis"
require "socket"
require "timeout"

# Commands of several threads on one connection. The test decides when the server replies.
class PipelineTest < Minitest::Test
  include Fairlead::Test::Waiting

  Redis = Fairlead::PubSub::Redis

  def setup
    @server = TCPServer.new("127.0.0.1", 0)
    accepted = Thread.new { @server.accept }
    greeter = Thread.new { greet(accepted.value) }
    @wire = Redis::Wire.open(host: "127.0.0.1", port: @server.local_address.ip_port, timeout: 1)
    @peer = accepted.value
  ensure
    greeter&.kill&.join
  end

  def teardown
    [@peer, @server].compact.each(&:close)
    @wire&.close
  end

  # Newer versions of redis-client tell their name first.
  def greet(peer)
    loop { peer.readpartial(4096).scan("SETINFO").each { peer.write("+OK\r\n") } }
  end

  # Starts a thread that sends a command; its value is the reply or the error.
  def ask(pipeline, number)
    request = pipeline.write(["PING", number.to_s])
    Thread.new { pipeline.reply(request) }.tap { |thread| thread.report_on_exception = false }
  end

  def test_each_thread_gets_its_own_reply
    pipeline = Redis::Pipeline.new(@wire, 20)
    threads = Array.new(3) { |number| ask(pipeline, number) }
    3.times { |number| @peer.write("+#{number}\r\n") }

    assert_equal %w[0 1 2], threads.map(&:value)
  end

  # Each reply comes in time after the previous one, but too late after its command.
  def test_replies_that_come_before_it_give_a_command_no_more_time
    pipeline = Redis::Pipeline.new(@wire, 1)
    threads = Array.new(10) { |number| ask(pipeline, number) }
    sender = Thread.new do
      10.times { |number| sleep(0.3) && @peer.write("+#{number}\r\n") }
    rescue SystemCallError
      nil # the connection has been broken off
    end

    assert_raises(Redis::Wire::Silence) { threads.last.value }
    assert_predicate pipeline, :broken?
  ensure
    sender&.join
  end

  def test_a_thread_that_is_stopped_takes_no_reply_from_the_others
    pipeline = Redis::Pipeline.new(@wire, 20)
    first = pipeline.write(%w[PING 0])
    stopped = Thread.new { Timeout.timeout(0.01) { pipeline.reply(first) } }
    stopped.report_on_exception = false
    wait_until("the thread to read") { stopped.status == "sleep" }
    others = Array.new(2) { |number| ask(pipeline, number + 1) }
    sleep(0.05) # its timeout has passed
    3.times { |number| @peer.write("+#{number}\r\n") }

    assert_equal %w[1 2], others.map(&:value)
    assert_raises(Timeout::Error) { stopped.value }
  end
end
