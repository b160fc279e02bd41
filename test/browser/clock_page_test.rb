# frozen_string_literal: true

require "test_helper"
require_relative "support/browsing"

# examples/clock in a browser: an EventSource reconnects by itself.
class ClockPageTest < Minitest::Test
  include Fairlead::Test::Browsing

  # Ids of the next four ticks.
  TICKS = <<~JS
    new Promise(done => {
      const ids = [], stream = new EventSource("ticks")
      stream.addEventListener("tick", event => {
        if (ids.push(Number(event.lastEventId)) === 4) { stream.close(); done(ids) }
      })
    })
  JS
  LAST = "Number(document.getElementById('last').textContent) || 0"
  STATE = "document.getElementById('state').dataset.state"

  def test_every_second_is_one_event_however_many_workers_there_are
    page = browse(example("clock", workers: 3).url)
    ids = page.evaluate(TICKS)

    assert_equal ids.uniq.sort, ids
    page.wait("#{STATE} === 'open' && #{LAST} >= #{ids.last}")
    assert_operator page.evaluate("document.querySelectorAll('#seconds [data-state=came]').length"), :>, 1
    assert_empty page.said
  end

  def test_the_browser_comes_back_after_a_restart_and_says_what_it_had_last
    server = example("clock", workers: 2)
    page = browse(server.url)
    page.wait(LAST)
    server.stop
    page.wait("#{STATE} === 'waiting'")
    last = page.evaluate(LAST)
    example("clock", workers: 2, port: server.port)

    page.wait("#{STATE} === 'open' && #{LAST} > #{last}")
    # A tick may come before the server's event about the connection.
    page.wait("document.getElementById('resumed').textContent === '#{last}'")
  end
end
