# frozen_string_literal: true

require "test_helper"
require "support/http2_commands"
require "support/http_client"
require "support/rack_apps"

# server-timing: the waits of a request and the time of the application.
class ServerTimingTest < Minitest::Test
  include Fairlead::Test::HttpServing
  include Fairlead::Test::Http2Commands

  APP = <<~'RUBY'
    lines = ["db", 'cache;desc="a, b"']
    LINES = Rack.release < "3" ? lines.join("\n") : lines
    handler = Class.new { def on_open(client) = client.close }
    run lambda { |env|
      case env["PATH_INFO"]
      when "/own" then [200, { "server-timing" => "db;dur=1.5" }, []]
      when "/lines" then [200, { "server-timing" => LINES }, []]
      when "/lazy" then [200, {}, Enumerator.new { |out| sleep 0.05; out << "a" }]
      when "/stream" then [200, {}, ->(stream) { sleep 0.05; stream.write("a"); stream.close }]
      when "/file" then [200, { "x-sendfile" => File.expand_path("config.ru") }, []]
      when "/error" then raise "no"
      when "/upgrade"
        env["rack.upgrade"] = handler.new
        [200, { "server-timing" => "own" }, []]
      when "/queue" then [200, {}, ["%.6f" % env["fairlead.queue_time"].call]]
      else
        sleep 0.05
        [200, {}, ["waited"]]
      end
    }
  RUBY

  TIMES = /\Aqueue;dur=(?<queue>\d+\.\d{1,3})(?:, lock;dur=(?<lock>\d+\.\d{1,3}))?, app;dur=(?<app>\d+\.\d{1,3})(?:, (?<own>.*))?\z/

  def test_a_response_has_the_times_of_its_request
    client = connect(timing)

    3.times do
      answer, took = timed { client.get("/") }
      times = times(answer)

      assert_equal RUBY_VERSION >= "3.2", !times[:lock].nil?
      total = times.slice(:queue, :lock, :app).values.compact.sum
      assert_operator total, :>=, 50
      assert_operator total, :<=, took
    end
  end

  def test_the_time_in_the_queue_is_that_of_the_env
    answer = connect(timing).get("/queue")

    assert_in_delta Float(answer.body) * 1000, times(answer)[:queue], 0.0011
  end

  def test_the_entries_of_the_application_stay
    server = timing
    client = connect(server)

    assert_equal "db;dur=1.5", times(client.get("/own"))[:own]
    lines = client.get("/lines").all("server-timing")
    assert_equal ["db", "cache;desc=\"a, b\""], [TIMES.match(lines.first)[:own], lines.last]
    assert_equal "db;dur=1.5", TIMES.match(curl(server, "/own")["server-timing"])[:own]
  end

  # The head comes before the first chunk.
  def test_the_time_ends_with_the_head
    client = connect(timing)

    %w[/lazy /stream].each do |path|
      answer, took = timed { client.get(path) }
      assert_operator took - times(answer)[:app], :>=, 50, path
    end
  end

  def test_files_and_errors_have_it
    client = connect(timing("--sendfile-root", "."))
    answers = %w[/file /error].map { |path| client.get(path) }

    assert_equal [200, 500], answers.map(&:status)
    answers.each { |answer| times(answer) }
  end

  def test_an_event_stream_has_it_and_a_web_socket_does_not
    server = timing
    stream = connect(server).request("GET", "/upgrade", { "accept" => "text/event-stream" }).answer

    assert_equal "own", times(stream)[:own]
    upgrade = { "connection" => "upgrade", "upgrade" => "websocket", "sec-websocket-version" => "13",
                "sec-websocket-key" => "dGhlIHNhbXBsZSBub25jZQ==" }
    answer = connect(server).request("GET", "/upgrade", upgrade).answer

    assert_equal [101, "own"], [answer.status, answer["server-timing"]]
  end

  def test_off_and_for_strangers_there_is_none
    [[], ["--server-timing=trusted"], ["--server-timing=trusted", "--trusted-proxies", "10.0.0.0/8"]].each do |options|
      client = connect(serve(APP, *options))

      assert_nil client.get("/")["server-timing"], options.inspect
      assert_equal "db;dur=1.5", client.get("/own")["server-timing"]
    end
  end

  def test_a_trusted_client_gets_it_and_a_stranger_behind_the_proxy_does_not
    client = connect(serve(APP, "--server-timing=trusted", "--trusted-proxies", "127.0.0.1"))

    times(client.get("/queue"))
    assert_nil client.get("/queue", { "x-forwarded-for" => "192.0.2.1" })["server-timing"]
    times(client.get("/queue"))
  end

  private

  def timing(*options) = serve(APP, "--server-timing", *options)

  # The result of the block, and its milliseconds.
  def timed
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    [yield, (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) * 1000]
  end

  # The milliseconds by name, and the entries of the application.
  def times(answer)
    match = TIMES.match(answer["server-timing"]) or flunk answer.head
    match.named_captures.to_h { |name, text| [name.to_sym, text && name != "own" ? Float(text) : text] }
  end
end
