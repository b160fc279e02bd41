# frozen_string_literal: true

require "test_helper"
require "zlib"
require "support/http_client"
require "support/rack_apps"

# Threads that change a body while it is written: each String is sent whole, and a change affects no other response.
class BodyThreadsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  parallelize_me!

  # Limits so low that a large write has to wait for its client.
  IMPATIENT = ["--response-disk-bytes", "0", "--response-memory-bytes", "64k"].freeze

  # Four threads that yield into one each: every piece is one letter many times.
  SEVERAL = <<~'RUBY'
    body = Enumerator.new do |out|
      "abcd".chars.map { |letter| Thread.new { 50.times { |n| out << letter * (20_000 + n) and Thread.pass } } }.each(&:join)
    end
    [200, { "content-type" => "text/plain" }, body]
  RUBY

  def test_each_string_of_several_threads_is_sent_whole
    server = serve(unlinted(SEVERAL), *IMPATIENT)

    assert_whole(narrow_client(server).request.answer.body)
  end

  def test_and_compressed
    server = serve(unlinted(SEVERAL), "--compress", *IMPATIENT)
    20.times do
      answer = narrow_client(server).request("GET", "/", { "accept-encoding" => "gzip" }).answer
      assert_equal "gzip", answer["content-encoding"]
      assert_whole(Zlib.gunzip(answer.body))
    end
  end

  # Change of an Array while its writer waits for the client => bytes of it that the client gets.
  CHANGES = {
    "parts.clear" => nil, "parts[1] = nil" => nil, "parts[2].clear" => nil, "parts.fill(:x)" => nil, "parts << 'more'" => 16_000_003
  }.freeze

  def test_an_array_that_is_changed_while_it_is_written
    CHANGES.each do |change, length|
      [[], ["--compress"]].each do |more|
        server = changing(change, *more)
        client = narrow_client(server).request("GET", "/change", { "accept-encoding" => "gzip", "connection" => "close" })
        wait_for_notes(server, 1)
        client.read_through("\r\n\r\n")
        server.write("go", "")
        wait_for_notes(server, 2)
        rest = client.rest

        assert_equal length, rest.bytesize, change if length && more.empty?
        assert_equal %w[began changed closed finished], wait_for_notes(server, 4), change
        assert_equal "plain", get(server).body
        refute_includes server.stderr, "panic", change
      end
    end
  end

  private

  # Starts a server with an Array that another thread changes once its writer waits for the client. Random bytes do not get
  # shorter.
  def changing(change, *arguments)
    serve(unlinted(<<~RUBY), *IMPATIENT, *arguments)
      next [200, {}, ["plain"]] unless env["PATH_INFO"] == "/change"

      parts = [Random.bytes(8_000_000), "x" + "y", Random.bytes(8_000_000), +"z"]
      parts.define_singleton_method(:close) { Notes.add("closed") }
      env["rack.after_reply"] << -> { Notes.add("finished") }
      Thread.new { Notes.add("began"); sleep 0.001 until File.exist?("go"); #{change}; Notes.add("changed") }
      [200, { "content-type" => "text/plain" }, parts]
    RUBY
  end

  def assert_whole(body)
    runs = body.scan(/((.)\2*)/m).map(&:first)

    assert_equal (0...50).sum { |n| 20_000 + n } * 4, body.bytesize
    assert_empty(runs.reject { |run| run.bytesize >= 20_000 }, "a String was cut")
  end
end
