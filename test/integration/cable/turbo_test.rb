# frozen_string_literal: true

require "test_helper"
require "cgi"
require "json"
require "support/board_application"
require "support/real_time"
require "support/web_socket"

# Turbo streams of a generated Rails application, changed in config/cable.yml alone, as the stock client subscribes to them.
class CableTurboTest < Minitest::Test
  include Fairlead::Test::HttpServing
  include Fairlead::Test::WebSockets

  SECONDS = 60 # for a start of Rails
  REFRESH = '<turbo-stream action="refresh"></turbo-stream>'

  def setup
    missing = Fairlead::Test::BoardApplication.missing and skip(missing)
  end

  def test_the_server_confirms_the_subscription_and_delivers_what_came_before_it
    server = board
    identifier = identifier_of(get(server, "/board?late=late").body)
    client = connected(server)
    subscribe(client, identifier)

    assert_equal({ "identifier" => identifier, "type" => "confirm_subscription" }, heard(client))
    assert_includes streamed(client), "late"
    create(server, "next")
    assert_includes streamed(client), "next"
    refute_match(/StreamsChannel/, File.read(server.path("log/development.log")))
  end

  def test_a_page_that_reconnects_gets_each_note_once
    server = board("-w", 2)
    identifier = identifier_of(get(server, "/board").body)
    notes = Array.new(6) do |number|
      create(server, "note #{number}")
      client = connected(server)
      subscribe(client, identifier)
      heard(client)
      text = streamed(client)
      3.times do |round|
        client.ping(round.to_s)
        client.receive_pong
      end
      client.drop(reset: true)
      text[/note \d/]
    end

    assert_equal Array.new(6) { |number| "note #{number}" }, notes
  end

  def test_a_page_of_another_server_loads_itself_again
    first = board
    identifier = identifier_of(get(first, "/board").body)
    first.stop
    client = connected(board)
    subscribe(client, identifier)

    assert_equal "confirm_subscription", heard(client)["type"]
    assert_equal REFRESH, streamed(client)
  end

  def test_forged_names_are_rejected_as_by_rails
    server = board
    identifier = identifier_of(get(server, "/board").body)
    forged = JSON.generate(JSON.parse(identifier).merge("signed_stream_name" => "forged"))
    client = connected(server)
    subscribe(client, forged)

    assert_equal({ "identifier" => forged, "type" => "reject_subscription" }, heard(client))
  end

  def test_a_patched_channel_is_left_to_rails
    server = board(initializer: <<~RUBY)
      Rails.application.config.after_initialize do
        Turbo::StreamsChannel.class_eval { def subscribed = super.tap { Rails.logger.info("patched") } }
      end
    RUBY
    client = connected(server)
    subscribe(client, identifier_of(get(server, "/board").body))
    wait_until("the line of the channel") { File.read(server.path("log/development.log")).include?("Turbo::StreamsChannel") }
  end

  private

  def board(*arguments, initializer: nil)
    files = Fairlead::Test::BoardApplication.files.merge("config/cable.yml" => "development:\n  adapter: fairlead\n")
    files = files.merge("config/initializers/patch.rb" => initializer) if initializer
    own(Fairlead::Test::ServerProcess.new(nil, *arguments, files: files)).start(seconds: SECONDS)
  end

  # The identifier that the client of turbo-rails makes from the attributes of its element.
  def identifier_of(html)
    element = html[/<turbo-cable-stream-source [^>]*>/]
    attribute = ->(name) { element[/ #{name}="([^"]*)"/, 1] }
    refute_nil attribute.call("data-since")
    JSON.generate(channel: attribute.call("channel"), signed_stream_name: attribute.call("signed-stream-name"), since: attribute.call("data-since"))
  end

  def connected(server)
    client = web_socket(server, "/cable", headers: { "origin" => "http://localhost:#{server.port}" }, protocols: ["actioncable-v1-json"])
    assert_equal "welcome", heard(client)["type"]
    client
  end

  def subscribe(client, identifier) = client.send_text(JSON.generate(command: "subscribe", identifier: identifier))

  def create(server, text)
    get(server, "/board?late=#{CGI.escape(text)}")
  end

  def streamed(client) = heard(client).fetch("message")

  # The next message other than a ping.
  def heard(client)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 20
    loop do
      message = JSON.parse(client.receive.last)
      return message unless message["type"] == "ping"

      flunk("nothing but pings") if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    end
  end
end
