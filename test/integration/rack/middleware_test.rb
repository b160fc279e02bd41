# frozen_string_literal: true

require "test_helper"
require "zlib"
require "support/real_time"

# Every kind of response through middleware that wraps bodies and adds fields, under Rack::Lint.
class MiddlewareTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  STACK = <<~RUBY
    use Rack::Lint
    use Rack::CommonLogger
    use Rack::Runtime
    use Rack::ConditionalGet
    use Rack::Deflater
    use Rack::TempfileReaper
  RUBY

  GZIP = { "accept-encoding" => "gzip" }.freeze

  def test_an_answer_is_compressed_on_its_way
    server = wrapped("[200, PLAIN.dup, ['text']]")

    assert_equal %w[text gzip], get(server, "/", GZIP).then { |answer| [Zlib.gunzip(answer.body), answer["content-encoding"]] }
    assert_equal "text", get(server).body
  end

  def test_a_web_socket
    client = web_socket(wrapped(<<~RUBY), headers: GZIP)
      env["rack.upgrade"] = Class.new { def self.on_message(client, data) = client.write(data) }
      [200, PLAIN.dup, []]
    RUBY

    assert_equal [:text, "hello"], client.send_text("hello").receive
  end

  def test_an_event_stream
    stream = event_stream(wrapped(<<~RUBY), headers: GZIP)
      env["rack.upgrade"] = Class.new { def self.on_open(client) = client.write("tick", event: "clock") }
      [200, PLAIN.dup, []]
    RUBY

    assert_equal %w[clock tick], stream.receive.then { |event| [event.event, event.data] }
    assert_nil stream["content-encoding"], "events are never compressed"
  end

  def test_a_streaming_body
    skip "Rack 2 has no streaming bodies" unless rack?("3")
    server = wrapped("[200, PLAIN.dup, ->(stream) { stream.write('one'); stream << 'two'; stream.flush; stream.close }]")

    assert_equal "onetwo", get(server).body
  end

  def test_a_streaming_body_that_another_thread_goes_on_with
    skip "Rack 2 has no streaming bodies" unless rack?("3")
    server = wrapped(<<~'RUBY')
      next [200, PLAIN.dup, ["plain"]] if env["PATH_INFO"] == "/plain"

      writer = lambda do |stream|
        Thread.new { sleep 0.01 until File.exist?("go"); stream.write("late"); stream.close }
      end
      [200, PLAIN.dup, writer]
    RUBY
    client = connect(server).request
    client.read_through("\r\n\r\n")
    assert_equal "plain", get(server, "/plain").body
    server.write("go", "")

    assert_equal "4\r\nlate\r\n0\r\n\r\n", client.read_through("0\r\n\r\n")
  end

  def test_a_partial_hijack
    server = wrapped("[200, PLAIN.merge('rack.hijack' => ->(stream) { stream.write('one'); stream.flush; stream.close }), []]")
    client = connect(server).request
    client.read_through("\r\n\r\n")

    assert_equal "one", client.rest
  end

  def test_a_full_hijack
    server = wrapped("env['rack.hijack'].call.then { |io| io.write('mine'); io.close }; [200, PLAIN.dup, []]")

    assert_equal "mine", connect(server).request.rest
  end

  private

  def wrapped(code)
    serve("#{PRELUDE}\nPLAIN = { 'content-type' => 'text/plain' }.freeze\n#{STACK}\nrun lambda { |env|\n#{code}\n}\n")
  end
end
