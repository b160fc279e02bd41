# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Threads and processes that use the stream of a streaming body at an unexpected time.
class StreamThreadsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  # Limits so low that a large write has to wait for its client.
  IMPATIENT = ["--response-disk-bytes", "0", "--response-memory-bytes", "64k"].freeze
  MUCH = "MUCH = ('x' * 900_000).freeze"

  def test_the_call_returns_while_another_thread_waits_for_the_client
    server = streaming("Thread.new { 20.times { |n| stream.write(MUCH); Notes.add(n) }; stream.close }; sleep 0.1", "-t", 1, *IMPATIENT)
    client = narrow_client(server).request("GET", "/stream")

    assert_equal 18_000_000, client.answer.body.count("x")
    assert_equal 20, wait_for_notes(server, 20).size
    assert_equal "plain", get(server).body
  end

  def test_a_writer_that_was_interrupted_may_write_again
    server = streaming(<<~RUBY, *IMPATIENT, setup: "require 'timeout'")
      begin
        Timeout.timeout(0.2) { loop { stream.write(MUCH) } }
      rescue Timeout::Error
        Notes.add("interrupted")
      end
      Notes.add(stream.write("x"))
    RUBY
    narrow_client(server).request("GET", "/stream")

    assert_equal %w[interrupted 1], wait_for_notes(server, 2)
  end

  def test_a_process_that_was_forked_does_not_end_what_it_has_inherited
    server = streaming("Thread.new { stream.write('one'); sleep 0.01 until File.exist?('go'); stream.write('two'); stream.close }",
                       plain: "Process.wait(fork { exit }); 'forked'")
    client = connect(server).request("GET", "/stream")
    client.read_through("one\r\n")
    assert_equal "forked", get(server).body
    server.write("go", "")

    assert_equal "3\r\ntwo\r\n0\r\n\r\n", client.read(13)
  end

  private

  # Starts a server that responds to /stream with +code+, and to other requests with the result of +plain+.
  def streaming(code, *arguments, plain: "'plain'", setup: "")
    serve(unlinted(<<~RUBY, setup: "#{MUCH}\n#{setup}"), *arguments)
      next [200, {}, [(#{plain})]] unless env["PATH_INFO"] == "/stream"

      [200, {}, ->(stream) { #{code} }]
    RUBY
  end
end
