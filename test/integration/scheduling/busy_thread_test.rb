# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"

# Work that continues while every Ruby thread is busy, asleep or computing: reads, refusals and timeouts; and no work while
# there is nothing to do.
class BusyThreadTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  # Each waits until the file "go" exists.
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/compute"
        warn("busy")
        1_000_000.times { nil } until File.exist?("go")
      when "/sleep"
        warn("busy")
        sleep 0.01 until File.exist?("go")
      when "/large" then next [200, {}, ["y" * 20_000_000]]
      end
      [200, {}, [env["rack.input"].read]]
    }
  RUBY

  def test_a_bad_request_is_refused_while_the_only_thread_sleeps
    while_busy("/sleep") { |server| assert_equal 400, refusal(server) }
  end

  def test_a_bad_request_is_refused_while_the_only_thread_computes
    while_busy("/compute") { |server| assert_equal 400, refusal(server) }
  end

  def test_a_slow_head_times_out_while_the_only_thread_computes
    while_busy("/compute", "--head-timeout", "0.5") do |server|
      assert_equal 408, connect(server).write("GET / HTTP/1.1\r\n").answer.status
    end
  end

  def test_a_body_is_read_while_the_only_thread_computes
    body = "x" * 30_000_000
    client = nil
    while_busy("/compute") do |server|
      # More than sockets hold: the write succeeds only because the server reads.
      client = connect(server).request("POST", "/", body: body)
    end

    assert_equal body.bytesize, client.answer.body.bytesize
  end

  def test_a_large_answer_is_sent_on_while_the_only_thread_computes
    large = nil
    while_busy("/compute", before: ->(server) { large = connect(server).request("GET", "/large") }) do
      assert_equal 20_000_000, large.answer.body.bytesize
    end
  end

  def test_an_idle_server_uses_no_processor_time
    server = serve(APP, "-t", 5)
    clients = Array.new(20) { connect(server).tap(&:get) }

    wait_for_idle_second(server.serving_pid)
    assert_equal 200, clients.last.get.status
  end

  private

  # Yields a server with one thread that is busy with a request; lets it finish afterwards.
  def while_busy(target, *arguments, before: nil)
    server = serve(APP, "-t", 1, *arguments)
    before&.call(server)
    client = connect(server).request("GET", target)
    server.wait_for_output(/busy/)
    yield server

    refute client.readable?, "the thread was no longer busy"
    server.write("go", "")
    assert_equal 200, client.answer.status
  end

  def refusal(server)
    connect(server).write("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n").answer.status
  end
end
