# frozen_string_literal: true

require "test_helper"
require "securerandom"
require_relative "support/browsing"
require_relative "support/relay"

# permessage-deflate as a browser negotiates it.
class BrowserCompressionTest < Minitest::Test
  include Fairlead::Test::Browsing

  ECHO = <<~RUBY
    Echo = Class.new { def on_message(client, data) = client.write(data) }
    run lambda { |env|
      env["rack.upgrade"] = Echo.new if env["rack.upgrade?"]
      [200, { "content-type" => "text/html; charset=utf-8" }, ["<!doctype html><title>Echo</title>"]]
    }
  RUBY

  # Sends +text+; yields the extension that the browser has negotiated, and true if the same text came back.
  ROUND_TRIP = <<~JS
    new Promise((done, fail) => {
      const text = %s, socket = new WebSocket(location.href.replace("http", "ws"))
      socket.onopen = () => socket.send(text)
      socket.onmessage = ({ data }) => { done([socket.extensions, data === text, data.length]); socket.close() }
      socket.onerror = socket.onclose = () => fail(new Error("closed"))
    })
  JS

  def test_a_large_text_is_compressed_on_its_way
    relay = relay_to(serve(ECHO))
    page = browse(relay.url)
    before = relay.bytes
    extensions, same, length = page.evaluate(format(ROUND_TRIP, '"A line that comes again – und nochmal. ".repeat(10_000)'))

    assert_match(/\Apermessage-deflate/, extensions)
    assert same
    assert_operator relay.bytes - before, :<, length / 10
  end

  def test_a_text_that_cannot_be_compressed_comes_back_whole
    page = browse(serve(ECHO).url)
    text = JSON.generate(SecureRandom.base64(300_000))

    assert_equal [true, text.length - 2], page.evaluate(format(ROUND_TRIP, text)).last(2)
  end

  def test_a_server_without_compression_is_asked_in_vain
    page = browse(serve(ECHO, "--deflate", "none").url)

    assert_equal ["", true, 5], page.evaluate(format(ROUND_TRIP, '"plain"'))
  end

  def after_teardown
    super
  ensure
    @relay&.close
  end

  private

  def relay_to(server) = (@relay = Fairlead::Test::Relay.new(server.port))
end
