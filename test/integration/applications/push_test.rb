# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The news by subject, as in agoo.
class PushApplicationTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  def test_a_subject_is_a_pattern
    [[], ["-w", 2]].each do |arguments|
      server = push(*arguments)
      one, rest, other = %w[/news.* /news.> /sport].map { |path| web_socket(server, path).tap(&:receive) }
      other.send_text("news.today rain")
      other.send_text("news.today.evening snow")
      other.send_text("sport none")

      assert_equal %w[rain snow], rest.receive_all(2)
      assert_equal "rain", one.receive.last
      assert_equal "none", other.receive.last
      one.send_text("news.x last")
      assert_equal "last", one.receive.last
    end
  end

  def test_what_a_thread_publishes_arrives
    [[], ["-w", 2, "--no-preload"]].each do |arguments|
      server = push(*arguments)
      socket = web_socket(server, "/time.*")
      stream = event_stream(server, "/time.>")

      assert_equal "welcome", socket.receive.last
      assert_equal %w[msg welcome], stream.receive.then { |event| [event.event, event.data] }
      2.times { assert_match(/\A\d+\z/, socket.receive.last) }
      assert_match(/\Amsg \d+\z/, stream.receive.then { |event| "#{event.event} #{event.data}" })
    end
  end

  def test_a_client_can_give_up_everything
    server = push
    client = web_socket(server, "/time.*")
    2.times { client.receive }
    client.send_text("enough")
    client.send_text("time.mine sent after that")
    client.ping("done")
    client.receive_pong
    sent_before = client.messages.map(&:last)

    assert(sent_before.all? { |text| text.match?(/\A(?:\d+|welcome)\z/) }, sent_before.inspect)
  end

  private

  def push(*arguments) = serve(nil, "--dir", File.join(__dir__, "push"), *arguments)
end
