# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/rails_servers"
require_relative "support/browsing"

# An application from `rails new` in a real browser: a chat over Action Cable, and its generated system tests.
class BrowserRailsTest < Minitest::Test
  include Fairlead::Test::Browsing
  include Fairlead::Test::RailsServers
  include Fairlead::Test::Secured

  # Names of tests differ between versions of Rails. The test that deletes needs the scripts of the generated application.
  SYSTEM_TESTS = "/visiting|creat|updat/"

  def test_two_pages_talk_over_action_cable
    server = rails_server
    assert_talk(*Array.new(2) { chat(server) })
  end

  # Action Cable's WebSocket is a stream of the connection that has loaded the page.
  def test_two_pages_talk_over_http2
    server = fairlead("-b", ssl_address, "--access-log", "access.log", files: certificate_files)
    ada, grace = Array.new(2) { connected(browse("https://localhost:#{server.ports.last}/chat", ignoreHTTPSErrors: true)) }
    assert_talk(ada, grace)
    assert_match(%r{"GET /cable HTTP/2\.0"}, File.read(server.path("access.log")))
  end

  def test_a_page_connects_again_after_a_restart
    server = rails_server
    page = chat(server)
    page.evaluate("void (window.disconnections = 0, new MutationObserver(() => window.disconnections += document.title === 'disconnected')" \
                  ".observe(document.querySelector('title'), { childList: true }))")
    server.write("version", "2")
    rails(server, "restart")
    page.wait("disconnections > 0 && document.title === 'connected'")
    say(page, "back")

    page.wait("#{log} === 'back'")
    assert_equal 2, version(server).first
  end

  # A channel that the second version rejects.
  FADING = <<~RUBY
    class FadingChannel < ApplicationCable::Channel
      def subscribed = Rails.configuration.x.version == "1" ? stream_from("none") : reject
    end
  RUBY

  NATIVE = { "config/cable.yml" => "development:\n  adapter: fairlead\n", "app/channels/fading_channel.rb" => FADING }.freeze

  def test_pages_notice_nothing_of_new_code_but_what_it_rejects
    server = fairlead("-w", 2, files: NATIVE)
    ada, grace = Array.new(2) { noticing(chat(server)) }
    { USR1: "phased restart", USR2: "hot restart" }.each do |signal, kind|
      server.write("version", "2")
      server.signal(signal)
      wait_until("the restart", seconds: 60) { server.stdout.include?("#{kind}: done") }
      say(ada, kind)
      [ada, grace].each { |page| page.wait("#{log}.endsWith('#{kind}')") }
    end

    assert_equal 2, version(server).first
    assert_equal([%w[connected rejected]] * 2, [ada, grace].map { |page| page.evaluate("noticed") })
  end

  # The tests name the server and require nothing else; selenium uses Chromium's driver.
  def test_the_generated_system_tests_pass_on_it
    skip "chromedriver is not installed" unless Fairlead::Test::Browser.executable("chromedriver")

    server = rails_server # for its folder
    output = rails(server, "test", "test/system", "-n", SYSTEM_TESTS, environment: { "RAILS_ENV" => "test" })

    assert_match(/^3 runs, \d+ assertions, 0 failures, 0 errors, 0 skips$/, output)
    assert_equal 3, File.read(server.path("log/test.log")).scan("answered by fairlead #{Fairlead::VERSION}").size
  end

  private

  # Waits for each message before it sends the next one: Action Cable's threads may pass on two messages in any order.
  def assert_talk(ada, grace)
    say(ada, "Hello <grace>")
    [ada, grace].each { |page| page.wait("#{log} === 'Hello <grace>'") }
    say(grace, "Hello & welcome")
    [ada, grace].each { |page| page.wait("#{log} === 'Hello <grace>|Hello & welcome'") }
  end

  def chat(server) = connected(browse(server.url("/chat")))

  # Subscribes to FadingChannel, and notes everything that the client of Action Cable notices about its connection.
  def noticing(page)
    page.evaluate("void (window.noticed = [], room.disconnected = () => noticed.push('disconnected'), " \
                  "room.connected = () => noticed.push('again'), room.consumer.subscriptions.create('FadingChannel', " \
                  "{ connected() { noticed.push('connected') }, disconnected() { noticed.push('lost') }, rejected() { noticed.push('rejected') } }))")
    page.tap { page.wait("noticed.length === 1") }
  end

  def connected(page) = page.tap { page.wait("document.title === 'connected'") }

  def say(page, text)
    page.fill("#text", text)
    page.press("#text", "Enter")
  end

  def log = "[...document.querySelectorAll('#log li')].map((line) => line.textContent).join('|')"
end
