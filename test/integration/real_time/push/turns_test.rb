# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Requests and messages take turns in one queue, and neither starves the other. The test compares the order of runs, not
# their times.
class TurnsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  # Each message and each request works for a millisecond and is counted.
  COUNTING = <<~'RUBY'
    def self.work(kind)
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.001
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      COUNTED[kind] += 1
    end

    def on_message(client, data)
      Handler.work(:messages)
      client.write(COUNTED[:requests]) if data == "count"
    end
  RUBY

  ANSWER = "Handler.work(:requests); COUNTED[:messages]"
  MANY = 3000

  def test_a_client_that_sends_without_end_does_not_keep_requests_out
    server = counting
    client = web_socket(server)
    flood = Thread.new { client.send_raw(Fairlead::Test::WebSocket::Frames.build(1, "x") * MANY) }
    wait_until("messages") { messages_run(server).positive? }
    before = messages_run(server)
    after = Array.new(5) { messages_run(server) }.last

    assert_operator after - before, :<, 500, "messages run while five requests waited"
    assert_operator after, :<, MANY
    flood.join
  end

  def test_a_client_that_pipelines_without_end_does_not_keep_messages_out
    server = counting
    client = web_socket(server)
    pipeline = connect(server)
    pipeline.write("GET / HTTP/1.1\r\nhost: a\r\nx-code: Handler.work(:requests)\r\n\r\n" * MANY)
    assert pipeline.readable?(20)
    first, *, last = Array.new(5) { client.send_text("count").receive.last.to_i }

    assert_operator last - first, :<, 500, "requests run while four messages waited"
    assert_operator last, :<, MANY
  end

  def test_clients_that_send_without_end_take_turns_with_one_that_does_not
    server = counting
    chatty = Array.new(5) { web_socket(server) }
    quiet = web_socket(server)
    floods = chatty.map { |client| Thread.new { client.send_raw(Fairlead::Test::WebSocket::Frames.build(1, "x") * (MANY / 5)) } }
    wait_until("messages") { messages_run(server).positive? }
    5.times { quiet.send_text("count").receive }

    assert_operator messages_run(server), :<, MANY, "all messages of the others came first"
    floods.each(&:join)
  end

  private

  def counting = pushing(COUNTING, "-t", 1, setup: "COUNTED = Hash.new(0)")

  def messages_run(server) = requested(server, ANSWER).to_i
end
