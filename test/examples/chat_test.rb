# frozen_string_literal: true

require "test_helper"
require "json"
require "securerandom"
require "support/real_time"

# The sockets of examples/chat; test/browser has the page.
class ChatTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  FOLDER = File.join(ROOT, "examples/chat")

  # A visitor of a room. Ignores news of other types.
  Visitor = Struct.new(:socket, :worker, :id) do
    def say(text, key: "1") = socket.send_text(JSON.generate(key: key, text: text))

    # Returns the next news of that type for which the block is true.
    def hear(type)
      loop do
        news = JSON.parse(socket.receive.last)
        return news if news["type"] == type && (!block_given? || yield(news))
      end
    end

    # Waits until exactly these visitors are in the room, in this order, each once.
    def hear_people(*names)
      hear("people") do |news|
        ids = news["people"].map { |person| person["id"] }
        raise "twice in #{news}" if ids.uniq != ids

        news["people"].map { |person| person["name"] } == names
      end
    end
  end

  def test_what_is_said_is_heard_in_every_worker
    server = chat("-w", 3)
    visitors = in_workers(server, 2)
    visitors.first.say("Hello", key: "k1")

    visitors.each do |visitor|
      message = visitor.hear("message")
      assert_equal ["Hello", "k1", visitors.first.id], [message["text"], message["key"], message.dig("from", "id")]
    end
  end

  def test_who_is_here_is_known_in_every_worker
    server = chat("-w", 3)
    ada = enter(server, "Ada")
    grace = enter(server, "Grace")
    [ada, grace].each { |visitor| visitor.hear_people("Ada", "Grace") }
    grace.socket.close(1000)

    ada.hear_people("Ada")
  end

  def test_the_people_of_a_killed_worker_disappear_and_can_come_back
    server = chat("-w", 2)
    ada, grace = in_workers(server, 2)
    ada.hear_people("Ada", "Grace")
    Process.kill(:KILL, grace.worker)
    ada.hear_people("Ada")
    back = enter(server, "Grace")

    [ada, back].each { |visitor| visitor.hear_people("Ada", "Grace") }
    refute_equal grace.worker, back.worker
  end

  def test_windows_stay_connected_while_workers_are_replaced
    server = chat("-w", 2)
    visitors = in_workers(server, 2)
    visitors.each { |visitor| visitor.hear_people("Ada", "Grace") }
    server.signal(:USR1)
    visitors.each do |visitor|
      welcome = visitor.hear("welcome")
      assert_equal visitor.id, welcome["id"]
      refute_equal visitor.worker, welcome["worker"]
    end
    visitors.first.say("Still here")

    assert_equal(["Still here"] * 2, visitors.map { |visitor| visitor.hear("message")["text"] })
    late = enter(server, "Zoe")
    [*visitors, late].each { |visitor| visitor.hear_people("Ada", "Grace", "Zoe") }
  end

  def test_the_same_person_in_two_workers_is_shown_once
    server = chat("-w", 2)
    ada = enter(server, "Ada")
    graces = in_workers(server, 2, names: %w[Grace Grace], key: "1234567890abcdef")
    enter(server, "Zoe")
    ada.hear_people("Ada", "Grace", "Zoe")
    graces.first.socket.close(1000)
    # If her first worker has not reported Grace yet, her leaving causes no news; Bob's coming and going does.
    bob = enter(server, "Bob")
    ada.hear_people("Ada", "Bob", "Grace", "Zoe")
    bob.socket.close(1000)

    ada.hear_people("Ada", "Grace", "Zoe")
  end

  def test_it_works_when_it_is_loaded_before_the_workers
    visitors = in_workers(chat("-w", 2, "--preload"), 2)

    visitors.each { |visitor| visitor.hear_people("Ada", "Grace") }
  end

  def test_messages_that_are_none_are_refused_with_a_reason
    ada = enter(chat, "Ada")
    refused = ["x" * 2_001, " \n", 5, nil].map do |text|
      ada.say(text)
      ada.hear("refused").values_at("key", "why")
    end
    ["[]", "{", "\u0000"].each { |text| ada.socket.send_text(text) }

    assert_equal [["1", "That is 2001 characters; 2000 fit."], ["1", "There is nothing in it."],
                  *[["1", "That was not a message."]] * 2], refused
    assert_equal [["", "That was not a message."]] * 3, Array.new(3) { ada.hear("refused").values_at("key", "why") }
    ada.say("x" * 2_000)
    assert_equal 2_000, ada.hear("message")["text"].length
  end

  def test_too_many_messages_at_once_are_refused
    ada = enter(chat, "Ada")
    21.times { |i| ada.say("message", key: i.to_s) }

    assert_equal "20", ada.hear("refused")["key"]
  end

  def test_nobody_comes_in_without_a_name_a_room_and_a_key
    server = chat
    wrong = [{ name: "" }, { name: " " }, { name: "x" * 33 }, { name: "a\nb" }, { room: "a b" }, { room: "x" * 33 }, { key: "1" }]

    wrong.each { |fields| assert_equal 400, refused(server, fields), fields }
    ["", "room=a&name=%FF&key=1234567890", "room=%ZZ", "room=a&room=b&name=a&key=1234567890"].each do |query|
      assert_equal 400, refused(server, query), query
    end
  end

  def test_pages_of_other_servers_do_not_come_in
    server = chat

    assert_equal 403, refused(server, {}, "origin" => "https://example.com")
    assert_equal 426, get(server, "/socket").status
    assert_equal 404, get(server, "/none").status
  end

  private

  def chat(*arguments) = serve(nil, "--dir", FOLDER, *arguments)

  def path(fields)
    return "/socket?#{fields}" if fields.is_a?(String)

    "/socket?#{Rack::Utils.build_query({ room: "tea", name: "Ada", key: SecureRandom.hex(8) }.merge(fields))}"
  end

  def enter(server, name, **fields)
    visitor = Visitor.new(web_socket(server, path(name: name, **fields)))
    welcome = visitor.hear("welcome")
    visitor.worker, visitor.id = welcome.values_at("worker", "id")
    visitor
  end

  # One visitor in each of +count+ workers. The accepting worker is random: a second visitor in a worker leaves again.
  def in_workers(server, count, names: %w[Ada Grace Alan], **fields)
    found = []
    wait_until("sockets in #{count} workers") do
      visitor = enter(server, names[found.size], **fields)
      found.any? { |other| other.worker == visitor.worker } ? visitor.socket.drop : found << visitor
      found.size == count
    end
    found
  end

  def refused(server, fields, headers = {})
    web_socket(server, path(fields), headers: headers)
    nil
  rescue Fairlead::Test::WebSocket::Refused => e
    e.status
  end
end
