# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"
require "support/rack_apps"

# Published advisories of other servers about clients that starve others.
class StarvationAdvisoriesTest < Minitest::Test
  include Fairlead::Test::HttpServing

  # Counts requests over all workers: one byte in a file for each.
  COUNTED = <<~RUBY
    count = File.open("count", "a") { |file| file.write("x"); file.flush; file.size }
    [200, { "content-type" => "text/plain" }, [count.to_s]]
  RUBY

  def test_cve_2019_16770_more_idle_connections_than_threads_starve_nobody
    server = serve(linted(COUNTED), "-t", "2")
    idle = Array.new(20) { connect(server).tap(&:get) }

    assert_equal "21", get(server).body
    assert_equal("22", idle.first.get.body)
  end

  def test_cve_2019_16770_more_busy_connections_than_threads_starve_nobody
    server = serve(linted(COUNTED), "-t", "1")

    assert_newcomers_served(server, busy: 6)
  end

  def test_cve_2021_29509_more_busy_connections_than_threads_of_all_workers_starve_nobody
    server = serve(linted(COUNTED), "-t", "1", "-w", "2")

    assert_newcomers_served(server, busy: 8)
  end

  def test_cve_2024_21647_chunk_extensions_are_bounded
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, [env['rack.input'].read]]"))
    head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"

    assert_equal "ab", connect(server).write("#{head}1;#{"x" * 1000}\r\na\r\n1;#{"y" * 1000}\r\nb\r\n0\r\n\r\n").answer.body
    assert_equal 400, connect(server).write("#{head}1;#{"x" * 5000}").answer.status
    assert_equal 400, connect(server).write("#{head}#{"1;#{"x" * 100}\r\na\r\n" * 200}").answer.status
  end

  def test_hyper_1_11_trailers_are_bounded
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, ['ok']]"))

    client = connect(server).write("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n#{"x: y\r\n" * 2000}")

    assert_equal 431, client.answer.status
  end

  def test_hyper_1_10_clients_that_half_close_keep_nobody_busy
    server = serve(linted("sleep 0.01 until File.exist?('go'); [200, { 'content-type' => 'text/plain' }, ['ok']]"), "-t", "1")
    clients = Array.new(5) { connect(server).request.tap(&:half_close) }
    before = Fairlead::Test::Processes.processor_time(server.serving_pid)
    clients.first.readable?(1)
    used = Fairlead::Test::Processes.processor_time(server.serving_pid) - before
    server.write("go", "")

    clients.each { |client| assert_equal 200, client.final_answer.status }
    assert_operator used, :<, 0.5, "seconds of processor time in one second of waiting"
  end

  def test_cve_2008_4310_a_field_of_spaces_takes_no_more_time_than_one_of_letters
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, ['ok']]"))
    request = ->(byte) { "GET / HTTP/1.1\r\nhost: a\r\nx: #{"#{byte * 100} y" * 500}\r\n\r\n" }

    letters, spaces = ["z", " "].map do |byte|
      started = monotonic
      20.times { assert_equal 200, connect(server).write(request.call(byte)).answer.status }
      monotonic - started
    end

    assert_operator spaces, :<, letters * 20
  end

  def test_cve_2025_26803_no_invalid_method_ends_the_server
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, ['ok']]"))

    [*"\0".."\x1f", "\x7f", "\x80", "\xff", " ", "(", "A" * 5000].each do |method|
      assert_includes [200, 400, 501], connect(server).write("#{method} / HTTP/1.1\r\nhost: a\r\n\r\n\r\n\r\n").answer.status, method.inspect
    end
    assert_equal 200, get(server).status
  end

  private

  # While +busy+ clients send their next request at each response, asserts that five newcomers are each served before the
  # others have had many more turns.
  def assert_newcomers_served(server, busy:)
    enough = false
    crowd = Array.new(busy) do
      client = connect(server)
      Thread.new { client.get until enough }
    end
    served = -> { File.size?(server.path("count")) || 0 }
    wait_until("the crowd to be busy") { served.call > busy * 5 }

    waits = Array.new(5) do
      newcomer = connect(server).request
      before = served.call
      Integer(newcomer.answer.body, 10) - before
    end
    enough = true
    crowd.each(&:join)

    assert_operator waits.sort[2], :<=, busy * 4, "requests served before the newcomers: #{waits}"
  end
end
