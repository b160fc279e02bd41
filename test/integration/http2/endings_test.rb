# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/http2_commands"
require "support/restarts"

# Ends of HTTP/2 connections: when the server ends, when its workers are replaced, and when they are idle.
class Http2EndingsTest < Minitest::Test
  include Fairlead::Test::Http2Commands
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Restarts

  SLOW = <<~'RUBY'
    run lambda { |env|
      File.write("begun", "")
      sleep 0.01 until File.exist?("go")
      [200, {}, ["answered"]]
    }
  RUBY

  [[], ["-w", 2]].each do |arguments|
    define_method(:"test_at_the_end_what_runs_is_answered_#{arguments.join}") do
      server = serve(SLOW, *arguments)
      output = Thread.new { nghttp(server, "/", options: ["-v"]) }
      wait_until("the request") { File.exist?(server.path("begun")) }
      server.signal(:TERM)
      wait_until("the end of the listeners") { refused?(server) }
      server.write("go", "")

      assert_match(/recv GOAWAY.*error_code=NO_ERROR.*:status: 200.*^answered/m, output.value)
      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  def test_an_idle_connection_is_told_of_the_end
    server = serve("run ->(_env) { [200, {}, []] }")
    seen = node_meanwhile(server, <<~JS) { wait_until("the request") { File.exist?(server.path("connected")) } && server.stop }
      session.on("goaway", (code, last) => say([code, last]))
      ask("/").then(() => require("fs").writeFileSync("#{server.path("connected")}", ""))
    JS

    assert_equal 0, seen.first
  end

  def test_an_idle_connection_ends_in_its_time
    server = serve("run ->(_env) { [200, {}, []] }", "--keep-alive-timeout", "1")
    seen = node(server, 'session.on("goaway", code => say(code)); ask("/")')

    assert_equal 0, seen
  end

  # Clients that reconnect after the GOAWAY lose no request.
  %w[--preload --no-preload].each do |flag|
    define_method(:"test_no_request_fails_while_workers_are_replaced_with_#{flag}") do
      server = versioned("-w", 2, "-t", 2, flag)
      seen = node_meanwhile(server, LOAD) do
        2.upto(3) do |number|
          server.write("version", number.to_s)
          server.signal(:USR1)
          restarted(server, times: number - 1)
        end
      end

      assert_empty seen["failures"]
      assert_operator seen["sessions"], :>, 4
    end
  end

  # Four clients, each with ten concurrent requests, until they have seen the third version a hundred times. They may repeat
  # requests on a new connection that the server has not begun (RFC 9113 §8.7): nghttp2 itself refuses requests after GOAWAY.
  LOAD = <<~'JS'
    const failures = []
    let sessions = 0
    const open = () => {
      sessions += 1
      const one = http2.connect(base)
      one.on("goaway", () => one.isLeaving = true)
      one.on("error", error => failures.push("session: " + error.message))
      return one
    }
    const client = async () => {
      let one = open(), last = 0
      while (last < 100) {
        if (one.isLeaving || one.closed || one.destroyed) one = open()
        const asked = Array.from({ length: 10 }, () => ask("/", {}, undefined, one))
        const results = await Promise.allSettled(asked)
        for (const { value, reason } of results) {
          if (reason && reason.message.includes("REFUSED_STREAM")) one.isLeaving = true
          else if (reason || value[0] !== 200) failures.push(reason ? reason.message : value[0])
          else if (value[2].startsWith("3")) last += 1
        }
      }
      one.close()
    }
    Promise.all([client(), client(), client(), client()]).then(() => say({ failures, sessions }))
  JS
end
