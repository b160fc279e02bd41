# frozen_string_literal: true

require "test_helper"
require "support/file_serving"
require "support/system_calls"

# System calls of a request for a static file: it checks that the copy in memory is up to date, and nothing more.
class SystemCallsTest < Minitest::Test
  include Fairlead::Test::FileServing

  parallelize_me!

  FILES = { "small.txt" => "small", "end.txt" => "end" }.freeze

  # Opens a file for reading. With O_PATH it is not read.
  READS = /open(?!.*O_PATH)/

  def test_a_file_in_memory_costs_one_look
    calls = calls_during(serve_public(FILES)) do |client|
      100.times { assert_file "small", client.get("/small.txt") }
      etag = client.get("/small.txt")["etag"]
      99.times { assert_equal 304, client.get("/small.txt", "if-none-match" => etag).status }
    end

    assert_equal 200, calls.size, calls.uniq.first(5)
    assert_empty calls.grep(READS)
  end

  def test_without_memory_it_is_opened_each_time
    server = serve_public(FILES, "--file-cache-bytes", "0")
    calls = calls_during(server) do |client|
      100.times { assert_file "small", client.get("/small.txt") }
    end
    # tmpfs cannot tell if a read would wait, so a thread that may wait opens the file again.
    times = `stat -f -c %T #{server.path("public")}`.strip == "tmpfs" ? 2 : 1

    assert_equal 100 * times, calls.grep(READS).size, calls.uniq.first(5)
  end

  def test_a_request_that_is_the_applications_anyway_costs_nothing
    calls = calls_during(serve_public(FILES)) do |client|
      50.times { assert_from_app client.get("/small.txt", UPGRADE) }
      50.times { assert_from_app client.request("POST", "/small.txt", {}, body: "a").answer }
    end

    assert_empty calls
  end

  private

  # Returns the calls during the block, after a warm-up.
  def calls_during(server)
    settle(*FILES.keys.map { |name| server.path("public/#{name}") })
    client = connect(server)
    3.times { FILES.each_key { |name| client.get("/#{name}") && client.get("/missing", UPGRADE) } }
    ask(server, "POST", "/", {}, "a")
    calls = Fairlead::Test::SystemCalls.new(server.serving_pid, server.path("strace.log"))
    yield client
    client.get("/end.txt")
    calls.before("end.txt")
  rescue Fairlead::Test::SystemCalls::Unavailable => e
    skip e.message
  ensure
    calls&.stop
  end
end
