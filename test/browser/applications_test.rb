# frozen_string_literal: true

require "test_helper"
require_relative "support/browsing"

# The applications of test/integration/applications that need a browser.
class BrowserApplicationsTest < Minitest::Test
  include Fairlead::Test::Browsing

  FOLDER = File.join(ROOT, "test/integration/applications")

  # Opens a socket at a path and keeps the messages.
  LISTEN = <<~JS
    new Promise((done, fail) => {
      window.heard = []
      window.socket = new WebSocket(location.origin.replace("http", "ws") + %s)
      socket.onmessage = ({ data }) => heard.push(data)
      socket.onopen = () => done(true)
      socket.onclose = () => fail(new Error("closed"))
    })
  JS

  def test_two_pages_of_the_chatroom_talk
    server = application("chatroom")
    ada = browse(server.url, prompted: "Ada")
    ada.wait("#{log} === 'Welcome, Ada. There are 1 of us.\\n'")
    grace = browse(server.url, prompted: "Grace <b>")
    grace.wait("!document.getElementById('text').disabled")
    grace.fill("#text", "Hello & welcome")
    grace.press("#text", "Enter")

    grace.wait("#{log} === 'Welcome, Grace <b>. There are 2 of us.\\nGrace <b>: Hello & welcome\\n'")
    ada.wait("#{log}.endsWith('Grace <b> came in.\\nGrace <b>: Hello & welcome\\n')")
    grace.close
    ada.wait("#{log}.endsWith('Grace <b> went out.\\n')")
  end

  def test_two_pages_of_the_chat_talk_across_workers
    server = application("chat", "-w", 2)
    ada, grace = %w[ada grace].map { |name| browse(server.url).tap { |page| page.evaluate(format(LISTEN, "/#{name}".to_json)) } }
    ada.wait("heard.includes('grace joined.')")
    ada.evaluate("socket.send('Hello')")
    [ada, grace].each { |page| page.wait("heard.includes('ada: Hello')") }
    grace.evaluate("void (socket.onclose = null, socket.close())")

    ada.wait("heard.includes('grace left.')")
  end

  private

  def application(name, *arguments) = serve(nil, "--dir", File.join(FOLDER, name), *arguments)

  def log = "document.getElementById('log').textContent"
end
