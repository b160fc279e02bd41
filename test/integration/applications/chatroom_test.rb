# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# The chatroom: the object is the connection, and reaches the other clients of its process.
class ChatroomApplicationTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  def test_the_page_comes_from_the_application
    answer = get(room)

    assert_equal 200, answer.status
    assert_includes answer.body, "new WebSocket"
  end

  def test_everybody_hears_the_others
    server = room
    ann = web_socket(server, "/chat/ann")
    assert_equal "Welcome, ann. There are 1 of us.", ann.receive.last
    # The messages after the welcome have arrived when she gets a response.
    ann.send_text("alone")
    assert_equal "ann: alone", ann.receive.last
    bob = web_socket(server, "/chat/bob%20b")
    assert_equal "Welcome, bob b. There are 2 of us.", bob.receive.last
    assert_equal "bob b came in.", ann.receive.last

    ann.send_text("hello")
    [ann, bob].each { |client| assert_equal [:text, "ann: hello"], client.receive }
    5.times { |number| bob.send_text(number.to_s) }
    [ann, bob].each { |client| assert_equal Array.new(5) { |number| "bob b: #{number}" }, client.receive_all(5) }
  end

  def test_who_says_bye_goes_and_is_missed
    server = room
    ann = web_socket(server, "/chat/ann")
    ann.receive
    # The others have heard of her when she gets a response; those who come later do not.
    ann.send_text("alone")
    ann.receive
    bob = web_socket(server, "/chat/bob")
    bob.receive
    ann.receive
    bob.send_text("bye")

    assert_equal "bob: bye", bob.receive.last
    bob.receive_close
    assert_equal ["bob: bye", "bob went out."], ann.receive_all(2)
    assert_empty server.stderr
  end

  def test_at_the_end_everybody_is_told
    server = room
    ann = web_socket(server, "/chat/ann")
    ann.receive
    server.signal(:TERM)

    assert_equal "The room closes.", ann.receive.last
    assert_predicate server.wait_exit, :success?
  end

  def test_with_workers_each_has_a_room_of_its_own
    server = room("-w", 2)
    clients = Array.new(12) { |number| web_socket(server, "/chat/#{number}") }
    sizes = clients.map { |client| size_of_room(client) }
    clients.last.send_text("hello")
    wait_until("the message to all clients of a room") { clients.count { |client| heard?(client) } >= sizes.last }
    clients.each { |client| client.ping("all").receive_pong }

    assert_equal sizes.last, clients.count { |client| heard?(client) }
    assert_operator sizes.tally.values.max, :<=, 2
  end

  private

  # Returns the number in a client's welcome, which may come after later visitors' messages.
  def size_of_room(client)
    loop do
      size = client.receive.last[/There are (\d+)/, 1]
      return Integer(size, 10) if size
    end
  end

  def heard?(client)
    client.take_in
    client.messages.any? { |_, text| text == "11: hello" }
  end

  def room(*arguments) = serve(nil, "--dir", File.join(__dir__, "chatroom"), *arguments)
end
