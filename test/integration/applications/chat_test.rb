# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The chat: every client subscribes to one channel, and every message is published on it.
class ChatApplicationTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  def test_everybody_hears_everything
    [[], ["-w", 2]].each do |arguments|
      server = chat(*arguments)
      ann = web_socket(server, "/ann")
      assert_equal "ann joined.", ann.receive.last
      others = Array.new(6) { |number| web_socket(server, "/guest%20#{number}") }
      heard(ann, *Array.new(6) { |number| "guest #{number} joined." })

      ann.send_text("hello, you")
      [ann, *others].each { |client| heard(client, "ann: hello, you") }
      others.first.close(1000)
      [ann, *others.drop(1)].each { |client| heard(client, "guest 0 left.") }
      assert_empty server.stderr
    end
  end

  def test_names_and_texts_may_be_in_any_script
    server = chat
    client = web_socket(server, "/J%C3%BCrgen")

    assert_equal [:text, "Jürgen joined."], client.receive.then { |type, text| [type, text.dup.force_encoding("UTF-8")] }
    client.send_text("さようなら")
    assert_equal "Jürgen: さようなら", client.receive.last.dup.force_encoding("UTF-8")
  end

  def test_who_comes_otherwise_is_told_so
    assert_equal "Come in by WebSocket.", get(chat).body
  end

  def test_at_the_end_everybody_is_told
    [[], ["-w", 2]].each do |arguments|
      server = chat(*arguments)
      clients = %w[ann bob].map { |name| web_socket(server, "/#{name}").tap { |client| heard(client, "#{name} joined.") } }
      server.signal(:TERM)

      clients.each do |client|
        heard(client, "The server is going away.")
        assert_equal 1001, client.receive_close(skip: true).first
      end
      assert_predicate server.wait_exit, :success?
    end
  end

  private

  def chat(*arguments) = serve(nil, "--dir", File.join(__dir__, "chat"), *arguments)

  # Waits until the client has received all of these, in any order, among others.
  def heard(client, *texts)
    client.wait_for("to hear #{texts.join(", ")}") { client.over? || (texts - client.messages.map(&:last)).empty? }
    assert_empty texts - client.messages.map(&:last)
  end
end
