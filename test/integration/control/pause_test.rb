# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/control"

# `fairlead ctl pause` and `resume`: new requests wait in the workers.
class PauseTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  APP = "run ->(env) { [200, {}, [\"served \#{env[\"PATH_INFO\"]}\"]] }"
  PAGE = "<h1>We are back soon"

  def steer(server, *arguments) = ctl("-S", server.path(STATE), *arguments)

  def paused(*arguments, **options)
    server = serve(APP, *arguments, *FLAGS, **options)
    assert_equal [0, "pause: ok\n", ""], steer(server, "pause")
    server
  end

  # Returns a client with a waiting request.
  def waiting(server, count)
    client = connect(server)
    client.request("GET", "/#{count}")
    wait_for_status(server, "#{count} waiting requests") { |status| queued(status) == count }
    client
  end

  def queued(status) = (status["worker_status"] || [status]).sum { |part| part.dig("counters", "queued") || 0 }

  def test_requests_wait_until_the_server_resumes
    [0, 2].each do |workers|
      server = paused("-w", workers)
      clients = [1, 2, 3].map { |count| waiting(server, count) }
      assert_equal [200, "{\"status\":\"paused\"}"], control(server, "/ready").then { |answer| [answer.status, answer.body] }
      assert_match(/^paused: new requests wait for up to 30(\.0)? s/, steer(server, "status")[1])
      assert_equal [0, "resume: ok\n", ""], steer(server, "resume")

      assert_equal ["served /1", "served /2", "served /3"], clients.map { |client| client.answer.body }
      assert_equal "{\"status\":\"ready\"}", control(server, "/ready").body
    end
  end

  def test_a_request_that_waits_for_too_long_gets_the_error_page
    server = serve(APP, "-w", 2, "--error-page", "502,503=page.html", *FLAGS, files: { "page.html" => PAGE })
    steer(server, "pause", "0.2")
    client = connect(server)
    response = client.get("/late")

    assert_equal [503, PAGE, "10", "text/html; charset=utf-8"], [response.status, response.body, response["retry-after"], response["content-type"]]
    steer(server, "resume")
    assert_equal "served /", client.get("/").body
  end

  def test_a_missing_error_page_is_an_error_at_the_start
    server = launch(APP, "--error-page", "503=none.html")

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(/error-page: .*none\.html is no file that can be read/, server.stderr)
  end

  def test_a_worker_that_starts_during_a_pause_is_paused_and_a_restart_keeps_the_requests_that_wait
    server = paused("-w", 2)
    client = waiting(server, 1)
    assert_equal 0, steer(server, "--wait", "phased-restart").first
    waiting(server, 2)
    steer(server, "resume")

    assert_equal "served /1", client.answer.body
  end

  def test_a_forgotten_pause_ends
    server = paused("-w", 1, "--pause-limit", "1")
    client = waiting(server, 1)

    assert_equal "served /1", client.answer.body
    assert_logged(/resumed: the pause has reached pause_limit/, server)
  end

  def test_nothing_is_lost_in_a_pause_under_load
    server = serve(APP, "-w", 2, *FLAGS)
    command = [Fairlead::LoadTool.find, "http://127.0.0.1:#{server.port}/", "--rate", "500", "-c", "8", "-d", "60", "--json", "-q"]
    report = Open3.popen2(*command) do |_input, output, tool|
      3.times do
        served = requests(server)
        wait_until("requests") { requests(server) > served + 100 }
        steer(server, "pause")
        wait_for_status(server, "waiting requests") { |status| queued(status) == 8 }
        steer(server, "resume")
      end
      Process.kill(:INT, tool.pid)
      JSON.parse(output.read).fetch("requests")
    end

    assert_equal 0, report["failed"], report.inspect
  end

  def requests(server) = json(server, "status")["worker_status"].sum { |worker| worker.dig("counters", "requests") }

  def test_a_pause_needs_post_and_seconds
    server = serve(APP, *FLAGS)

    assert_equal [405, "Use POST"], command(server, "pause").then { |answer| [answer.status, answer.body] }
    assert_equal 2, steer(server, "pause", "soon").first
    assert_equal "served /", get(server).body
  end
end
