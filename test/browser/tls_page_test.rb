# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/certificates"
require_relative "support/browsing"

# A browser over TLS, with the application of test/conformance/tls.
class TlsPageTest < Minitest::Test
  include Fairlead::Test::Browsing
  include Fairlead::Test::Secured

  APPLICATION = File.read(File.join(ROOT, "test/conformance/tls/application.ru"))

  # A request with a body, a large download, a WebSocket and an event stream, all within one page.
  SCRIPT = <<~JS
    (async () => {
      const piece = "0123456789abcdef".repeat(65536), events = []
      const echo = new Promise((done, failed) => {
        const socket = new WebSocket(location.origin.replace("https:", "wss:") + "/echo")
        socket.onopen = () => socket.send(piece)
        socket.onmessage = message => { socket.close(); done(message.data === piece) }
        socket.onerror = () => failed("the WebSocket failed")
      })
      const stream = new Promise(done => {
        const source = new EventSource("/events")
        source.onmessage = event => { if (events.push(event.data) === 3) { source.close(); done(events) } }
      })
      return {
        scheme: location.protocol, secure: isSecureContext,
        version: await (await fetch("/version")).text(),
        posted: await (await fetch("/digest", { method: "POST", body: piece })).text(),
        downloaded: (await (await fetch("/large")).arrayBuffer()).byteLength,
        echo: await echo, events: await stream
      }
    })()
  JS

  def test_a_page_asks_posts_downloads_talks_and_listens
    server = serve_tls(APPLICATION, "-w", 2)
    page = browse("https://localhost:#{server.port}/page", ignoreHTTPSErrors: true)
    expected = {
      "scheme" => "https:", "secure" => true, "version" => "TLSv1.3", "posted" => Digest::SHA256.hexdigest("0123456789abcdef" * 65_536),
      "downloaded" => 8 << 20, "echo" => true, "events" => %w[1 2 3]
    }

    assert_equal expected, page.evaluate(SCRIPT)
  end
end
