# frozen_string_literal: true

require "test_helper"
require "json"
require "support/http2_commands"
require "support/http_client"

# HTTP_X_REQUEST_START, from which monitoring tools compute how long a request has waited.
class RequestStartTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Http2Commands

  APP = <<~RUBY
    require "json"
    run lambda { |env|
      now = Process.clock_gettime(Process::CLOCK_REALTIME)
      sleep 0.05 until File.exist?("go") if env["PATH_INFO"] == "/hold"
      told = env.values_at("HTTP_X_REQUEST_START", "HTTP_X_QUEUE_START", "HTTP_X_MIDDLEWARE_START", "puma.request_body_wait")
      [200, {}, [JSON.generate([now, env["fairlead.queue_time"].call, *told])]]
    }
  RUBY

  # One sent by a client or a proxy.
  SENT = { "x-request-start" => "t=1.5", "x-queue-start" => "2500", "x-middleware-start" => "3" }.freeze

  def now = Process.clock_gettime(Process::CLOCK_REALTIME)

  # [the time when the application began, the wait for a thread, the fields, the wait for the body]
  def ask(client, path = "/", fields = {}) = JSON.parse(client.request("GET", path, fields).answer.body)

  # The time that the env has.
  def started(told)
    assert_match(/\At=\d{10}\.\d{4}\z/, told[2])
    Float(told[2].delete_prefix("t="))
  end

  # The time is rounded down to a tenth of a millisecond.
  def assert_between(from, start, to) = assert(from - 1.1e-4 <= start && start <= to + 1.1e-4, [from, start, to].inspect)

  def test_it_is_the_time_at_which_the_request_was_complete
    client = connect(serve(APP))

    5.times do # further ones have a shape
      before = now
      told = ask(client)
      assert_between(before, started(told), told[0] - told[1])
    end
  end

  def test_the_time_in_the_queue_comes_after_it
    server = serve(APP, "-t", "1:1")
    held = connect(server).request("GET", "/hold")
    client = connect(server)
    client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    sent = now
    wait_until("a wait that can be measured") { now - sent > 0.1 }
    released = now
    server.write("go", "")
    told = JSON.parse(client.answer.body)

    held.answer
    assert_operator started(told), :<, released
    assert_operator told[1], :>, 0.05
    assert_between(sent - 0.1, started(told), told[0] - told[1])
  end

  def test_of_a_client_the_fields_are_left_out
    client = connect(serve(APP))

    3.times do
      before = now
      told = ask(client, "/", SENT)
      assert_between(before, started(told), told[0])
      assert_equal [nil, nil], told[3, 2]
    end
  end

  def test_of_a_trusted_proxy_the_fields_stay
    client = connect(serve(APP, "--trusted-proxies", "127.0.0.1"))

    3.times do
      assert_equal SENT.values, ask(client, "/", SENT)[2, 3]
      assert_equal [nil, "2500", nil], ask(client, "/", SENT.slice("x-queue-start"))[2, 3]
      before = now
      assert_between(before, started(ask(client)), now)
    end
  end

  def test_switched_off_all_fields_stay
    client = connect(serve(APP, "--no-request-start"))

    3.times do
      assert_equal SENT.values, ask(client, "/", SENT)[2, 3]
      assert_equal [nil] * 3, ask(client)[2, 3]
    end
  end

  # Readers subtract this wait.
  def test_with_the_wait_for_the_body_it_is_the_time_of_the_head
    [[], ["--puma-env"]].each do |options|
      client = connect(serve(APP, *options))
      client.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n")
      sent = now
      wait_until("a wait that can be measured") { now - sent > 0.1 }
      client.write("x")
      told = JSON.parse(client.answer.body)

      assert_between(started(told), sent + 0.1, told[0]) if options.any?
      assert_between(sent + 0.1, started(told) + (told[5].to_f / 1000), told[0])
    end
  end

  def test_a_request_over_http2_has_it
    before = now
    told = JSON.parse(curl(serve(APP), "/", "-H", "x-request-start: t=1").body)

    assert_between(before, started(told), told[0])
  end
end
