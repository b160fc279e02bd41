# frozen_string_literal: true

require "test_helper"
require "support/servers"
require "support/board_application"
require_relative "support/browsing"

# A generated Rails application with `broadcasts_to` and `turbo_stream_from` in real browsers.
class BrowserTurboTest < Minitest::Test
  include Fairlead::Test::Browsing

  SECONDS = 60 # for a start of Rails

  # Turbo's own consumer.
  CONSUMER = "import('/turbo.js').then(({ cable }) => cable.getConsumer())"

  def before_setup
    super
    missing = Fairlead::Test::BoardApplication.missing and skip(missing)
  end

  def test_pages_show_what_one_of_them_creates
    server = board
    pages = Array.new(2) { connected(browse(server.url("/board"))) }
    %w[first second].each_with_index do |text, index|
      say(pages[index], text)
      pages.each { |page| page.wait("#{shown}.endsWith('#{text}')") }
    end

    assert_equal ["first|second"] * 2, pages.map { |page| page.evaluate(shown) }
  end

  def test_a_page_shows_what_was_created_while_it_loaded
    server = board("-w", 2)
    browse(server.url("/board?late=late")).wait("#{shown} === 'late'")
  end

  def test_a_page_shows_what_was_created_while_it_had_no_connection
    server = board("-w", 2)
    page = connected(browse(server.url("/board")))
    page.evaluate("#{CONSUMER}.then((consumer) => consumer.connection.webSocket.close())")
    page.wait("!document.querySelector('turbo-cable-stream-source[connected]')")
    say(connected(browse(server.url("/board"))), "meanwhile")

    page.wait("#{shown} === 'meanwhile'")
  end

  private

  def board(*arguments)
    files = Fairlead::Test::BoardApplication.files.merge("config/cable.yml" => "development:\n  adapter: fairlead\n")
    own(Fairlead::Test::ServerProcess.new(nil, *arguments, files: files)).start(seconds: SECONDS)
  end

  def connected(page) = page.tap { page.wait("document.querySelector('turbo-cable-stream-source[connected]')") }

  def say(page, text)
    page.fill("#text", text)
    page.press("#text", "Enter")
  end

  def shown = "[...document.querySelectorAll('#notes li')].map((line) => line.textContent).join('|')"
end
