# frozen_string_literal: true

require "test_helper"
require_relative "support/browsing"

# examples/chat in real windows, with sockets in several workers.
class ChatPageTest < Minitest::Test
  include Fairlead::Test::Browsing

  LINK = "document.getElementById('link').dataset.state"
  WORKER = "document.getElementById('chat').dataset.worker"
  TEXTS = "[...document.querySelectorAll('.message[data-state=arrived] .text')].map(text => text.textContent)"
  AUTHORS = "[...document.querySelectorAll('.message bdi')].map(name => name.textContent)"
  PEOPLE = "[...document.querySelectorAll('#people bdi')].map(name => name.textContent)"
  NOTICES = "[...document.querySelectorAll('.notice')].map(notice => notice.textContent)"

  def test_windows_in_two_workers_talk
    server = example("chat", workers: 4)
    ada = enter(server, "Ada")
    grace = enter(server, "Grace", elsewhere_than: [ada])
    say(ada, "Hello, Grace")
    wait_for_texts(grace, ["Hello, Grace"])
    say(grace, "Hello, Ada")

    [ada, grace].each { |page| wait_for_texts(page, ["Hello, Grace", "Hello, Ada"]) }
    assert_equal [%w[Ada Grace]] * 2, [ada, grace].map { |page| page.evaluate(AUTHORS) }
    assert_equal [[], []], [ada, grace].map(&:said)
  end

  def test_everybody_sees_the_same_people_in_any_worker
    server = example("chat", workers: 4)
    ada = enter(server, "Ada")
    grace = enter(server, "Grace", elsewhere_than: [ada])
    alan = enter(server, "Alan", elsewhere_than: [ada, grace])

    [ada, grace, alan].each { |page| wait_for_people(page, %w[Ada Alan Grace]) }
    wait_for_notice(ada, "Grace came in")
    assert_equal ["You are in #lobby. Nothing said here is stored."], alan.evaluate(NOTICES)
    alan.click("#leave")
    [ada, grace].each { |page| wait_for_people(page, %w[Ada Grace]) }
    wait_for_notice(ada, "Alan left")
  end

  def test_rooms_do_not_hear_each_other
    server = example("chat", workers: 2)
    ada = enter(server, "Ada", room: "tea")
    grace = enter(server, "Grace", room: "coffee")
    say(ada, "Green?")
    wait_for_texts(ada, ["Green?"])
    say(grace, "Black.")

    wait_for_texts(grace, ["Black."])
    assert_equal [["Ada"], ["Grace"]], [ada, grace].map { |page| page.evaluate(PEOPLE) }
  end

  def test_markup_is_shown_as_text
    server = example("chat", workers: 2)
    name = "<b>Ada</b>"
    ada = enter(server, name)
    grace = enter(server, "Grace")
    markup = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\">"
    say(ada, markup)

    wait_for_texts(grace, [markup])
    wait_for_people(grace, [name, "Grace"])
    assert_equal "#lobby", grace.evaluate("document.title")
    assert_equal 0, grace.evaluate("document.querySelectorAll('#log script, #log img, #chat b').length")
  end

  def test_a_message_that_is_too_long_is_kept_and_said_to_be
    ada = enter(example("chat", workers: 2), "Ada")
    say(ada, "x" * 2_001)
    ada.wait("document.getElementById('hint').textContent.includes('1 character too long')")

    assert_equal 2_001, ada.evaluate("document.getElementById('draft').value.length")
    say(ada, "x" * 2_000)
    wait_for_texts(ada, ["x" * 2_000])
  end

  def test_a_window_whose_worker_was_killed_comes_back_and_the_others_lose_nothing
    server = example("chat", workers: 4)
    ada = enter(server, "Ada")
    grace = enter(server, "Grace", elsewhere_than: [ada])
    alan = enter(server, "Alan", elsewhere_than: [ada])
    killed = ada.evaluate(WORKER)
    Process.kill(:KILL, Integer(killed))
    said = Array.new(10) { |i| say(grace, "message #{i}") }

    wait_for_texts(alan, said)
    ada.wait("#{LINK} === 'open' && #{WORKER} !== '#{killed}'")
    [ada, grace, alan].each { |page| wait_for_people(page, %w[Ada Alan Grace]) }
    say(ada, "I am back")
    [grace, alan].each { |page| wait_for_texts(page, [*said, "I am back"]) }
  end

  def test_what_is_said_while_the_server_is_away_arrives_once
    server = example("chat", workers: 2)
    ada = enter(server, "Ada")
    grace = enter(server, "Grace")
    server.stop
    ada.wait("#{LINK} === 'waiting' && document.getElementById('link-text').textContent.includes('Connection lost')")
    say(ada, "Are you there?")
    ada.fill("#draft", "a draft")
    example("chat", workers: 2, port: server.port)

    [ada, grace].each { |page| page.wait("#{LINK} === 'open'") }
    wait_for_people(ada, %w[Ada Grace])
    wait_for_texts(ada, ["Are you there?"])
    assert_equal "a draft", ada.evaluate("document.getElementById('draft').value")
  end

  def test_a_reload_while_every_worker_is_replaced_comes_back_with_the_draft
    server = example("chat", workers: 2)
    ada = enter(server, "Ada")
    ada.fill("#draft", "half a thou")
    server.worker_pids.each { |pid| Process.kill(:KILL, pid) }
    ada.reload

    ada.wait("#{LINK} === 'open'")
    assert_equal "half a thou", ada.evaluate("document.getElementById('draft').value")
    wait_for_people(ada, ["Ada"])
  end

  private

  # Opens a page and enters a room. +elsewhere_than+: pages of other workers; the accepting worker is random, so it tries
  # again.
  def enter(server, name, room: "lobby", elsewhere_than: [])
    page = browse(server.url("/##{room}"))
    page.fill("#name", name)
    page.click("text=Come in")
    taken = elsewhere_than.map { |other| other.evaluate(WORKER) }
    wait_until("a socket outside of #{taken}", seconds: 60) do
      page.wait("#{LINK} === 'open' && !!#{WORKER}")
      taken.include?(page.evaluate(WORKER)) ? (page.reload && nil) : page
    end
  end

  def say(page, text)
    page.fill("#draft", text)
    page.press("#draft", "Enter")
    text
  end

  # Waits for exactly these messages, in this order.
  def wait_for_texts(page, texts)
    wait_for(page, TEXTS, texts)
  end

  def wait_for_people(page, names)
    wait_for(page, PEOPLE, names)
  end

  def wait_for(page, script, expected)
    found = nil
    wait_until("the expected", seconds: Fairlead::Test::Browser::PATIENCE) { (found = page.evaluate(script)) == expected }
  rescue Fairlead::Test::Waiting::Expired
    assert_equal expected, found
  end

  def wait_for_notice(page, text) = page.wait("#{NOTICES}.includes(#{text.to_json})")
end
