# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/certificates"
require_relative "support/browsing"

# A browser over HTTP/2, with the application of test/conformance/http2. It opens its WebSocket on the existing connection
# (RFC 8441).
class Http2PageTest < Minitest::Test
  include Fairlead::Test::Browsing
  include Fairlead::Test::Secured

  APPLICATION = File.read(File.join(ROOT, "test/conformance/http2/application.ru"))

  SCRIPT = <<~JS
    (async () => {
      const body = "0123456789abcdef".repeat(4 * 65536), events = []
      const hex = async buffer => Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", buffer)),
                                             byte => byte.toString(16).padStart(2, "0")).join("")
      const text = async (path, options) => (await fetch(path, options)).text()
      const download = async path => hex(await (await fetch(path)).arrayBuffer())
      const numbers = Array.from({ length: 100 }, (_, number) => String(number))
      const heard = []
      const echo = new Promise((done, failed) => {
        const socket = new WebSocket(location.origin.replace("https:", "wss:") + "/echo")
        socket.onopen = () => socket.send(body.slice(0, 1 << 20))
        socket.onmessage = message => { if (heard.push(message.data) === 2) socket.close(1000) }
        socket.onclose = event => done(event.code)
        socket.onerror = () => failed("the WebSocket failed")
      })
      const stream = new Promise(done => {
        const source = new EventSource("/events")
        source.onmessage = event => { if (events.push(event.data) === 3) { source.close(); done(events) } }
      })
      const seen = {
        head: (await fetch("/", { method: "HEAD" })).status, missing: (await fetch("/missing")).status, moved: await text("/moved"),
        posted: await text("/digest", { method: "POST", body }), large: await download("/large"), pieces: await download("/pieces"),
        parallel: (await Promise.all(numbers.map(number => text("/slow?" + number)))).filter((body, index) => body === numbers[index]).length,
        events: await stream, closed: await echo
      }
      const hops = performance.getEntriesByType("resource").map(entry => entry.nextHopProtocol).filter(protocol => protocol)
      return { ...seen, hops: [...new Set(hops)], over: heard[0], echo: heard[1] === body.slice(0, 1 << 20) }
    })()
  JS

  SEEN = {
    "head" => 200, "missing" => 404, "moved" => "hello", "posted" => Digest::SHA256.hexdigest("0123456789abcdef" * 4 * 65_536),
    "large" => Digest::SHA256.hexdigest("0123456789abcdef" * 80 * 4096), "pieces" => Digest::SHA256.hexdigest("0123456789abcdef" * 80 * 4096),
    "parallel" => 100, "events" => %w[1 2 3], "closed" => 1000, "hops" => ["h2"], "over" => "HTTP/2", "echo" => true
  }.freeze

  def test_a_page_does_everything_over_http2
    lines = lines_of_page(SEEN)

    assert_empty lines.grep_v(%r{ HTTP/2\.0" })
  end

  # Without WebSockets over HTTP/2, a browser opens an HTTP/1.1 connection for each of them.
  def test_a_web_socket_has_a_connection_of_its_own_otherwise
    lines = lines_of_page({ **SEEN, "over" => "HTTP/1.1" }, "--no-http2-websockets")

    assert_equal ["GET /echo HTTP/1.1"], lines.grep_v(%r{ HTTP/2\.0" }).map { |line| line[/"(.*?)"/, 1] }
  end

  private

  # Asserts the page's result, and returns the lines of the access log.
  def lines_of_page(seen, *options)
    server = serve_tls(APPLICATION, "-w", 2, "-t", 2, "--access-log", "access.log", "--early-hints", *options)
    page = browse("https://localhost:#{server.port}/page", ignoreHTTPSErrors: true)

    assert_equal seen, page.evaluate(SCRIPT)
    page.close
    wait_until("the log line of the WebSocket") { File.read(server.path("access.log")).match?(%r{"GET /echo HTTP/\S+" 101}) }
    File.readlines(server.path("access.log"))
  end
end
