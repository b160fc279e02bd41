# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/pausing"

# A client that sends thousands of requests without waiting for responses gets one request's turn at a time, like any other.
class FloodTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Pausing

  COUNTING = <<~RUBY
    COUNT = Hash.new(0)
    run lambda { |env|
      sleep 0.002
      COUNT[env["PATH_INFO"]] += 1
      [200, { "x-flood" => COUNT["/flood"].to_s }, ["."]]
    }
  RUBY

  # Responds with the number of requests so far.
  ORDER = "count = 0; run ->(env) { [200, {}, [(count += 1).to_s]] }"

  def test_a_pipeline_of_thousands_gets_one_turn_for_each_turn_of_another_client
    server = serve(COUNTING, "-t", 1)
    flood = connect(server)
    flood.write("GET /flood HTTP/1.1\r\nhost: a\r\n\r\n" * 3000)
    flood.answer
    polite = connect(server)
    first, last = Array.new(100) { polite.get("/polite")["x-flood"].to_i }.values_at(0, -1)

    assert_includes 80..220, last - first, "turns of the pipeline during 99 turns of the other client"
  end

  def test_a_pipeline_whose_answers_are_not_read_stops_being_served
    server = serve("TEXT = 'x' * 50_000; run ->(env) { [200, {}, [TEXT]] }", "-t", 1, "--write-timeout", 1)
    flood = connect(server)
    writer = Thread.new { flood.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 1_000_000) }
    writer.report_on_exception = false

    assert_equal(["x" * 50_000], Array.new(20) { get(server).body }.uniq)
    assert_raises(SystemCallError) { writer.value }
    assert_equal 200, get(server).status
  end

  # The server is stopped while the kernel receives the whole upload, so it can then read everything at once.
  def test_a_large_upload_leaves_others_their_turn
    server = serve(ORDER, "-t", 1, bind: "unix://app.sock")
    upload, other = Array.new(2) { adopt(UNIXSocket.new(server.path("app.sock"))).tap(&:get) }
    upload.socket.setsockopt(:SOCKET, :SNDBUF, 4_000_000)
    pause_processes([server.serving_pid])
    rest = write_what_fits(upload, "POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 1500000\r\n\r\n#{"x" * 1_500_000}")
    other.request("GET", "/other")
    resume_processes([server.serving_pid])
    upload.write(rest)

    assert_equal(%w[3 4], [other, upload].map { |client| client.answer.body })
  end

  def test_many_busy_connections_do_not_keep_a_new_one_waiting
    server = serve(COUNTING, "-t", 1)
    crowd = Array.new(20) { connect(server).request("GET", "/flood") }
    feeding = true
    feeder = Thread.new { crowd.each { |client| client.answer && client.request("GET", "/flood") } while feeding }
    counts = Array.new(6) { get(server)["x-flood"].to_i }
    feeding = false
    feeder.join

    assert_operator counts.last - counts.first, :<, 5 * 100, "requests of the other 20 during 5 of new connections"
  end

  private

  # Returns the bytes that the kernel does not accept.
  def write_what_fits(client, bytes)
    until bytes.empty?
      taken = client.socket.write_nonblock(bytes, exception: false)
      return bytes if taken == :wait_writable

      bytes = bytes.byteslice(taken..)
    end
    bytes
  end
end
