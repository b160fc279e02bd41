# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Bodies that are called with a stream (Rack SPEC, "Streaming Body"): the stream behaves like an IO. ../hijack tests streams
# that are kept after the call.
class StreamingBodyTest < Minitest::Test
  include Fairlead::Test::HttpServing

  def test_what_is_written_is_sent_at_once
    server = serving("stream.write('first'); sleep 0.01 until File.exist?('go'); stream << 'second' << 'third'")
    client = connect(server).request

    client.read_through("5\r\nfirst\r\n")
    server.write("go", "")

    assert_equal "6\r\nsecond\r\n5\r\nthird\r\n0\r\n\r\n", client.read_through("0\r\n\r\n")
    assert_equal 200, client.get.status
  end

  def test_the_head_is_sent_before_the_call
    server = serving("sleep 0.01 until File.exist?('go')")
    client = connect(server).request

    assert_match(%r{\AHTTP/1\.1 200 OK\r\n}, client.read_through("\r\n\r\n"))
    server.write("go", "")

    assert_equal "0\r\n\r\n", client.read_through("0\r\n\r\n")
  end

  # Code that is called with a stream => its result, as noted.
  RESULTS = {
    "stream.write('ab')" => "2", "stream.write('ab', 'c', 4)" => "4", "stream.write('')" => "0", "stream.write('ä')" => "2",
    "stream.write" => "0", "(stream << 'a').equal?(stream)" => "true", "stream.flush.equal?(stream)" => "true", "stream.closed?" => "false",
    "stream.close" => "nil", "stream.close; stream.closed?" => "true", "stream.close; stream.close" => "nil",
    "stream.close_write; stream.closed?" => "true", "stream.close_read; stream.closed?" => "false",
    "stream.read" => '""', "stream.read(1)" => "nil", "stream.read(nil, +'x')" => '""',
    "stream.syswrite('ab')" => "2", "stream.write_nonblock('ab')" => "2", "stream.write_nonblock('ab', exception: false)" => "2",
    "stream.print('a', 1)" => "nil", "stream.printf('%03d', 7)" => "nil", "stream.puts(%w[a b], 'c')" => "nil", "stream.sync" => "true",
    "stream.sync = true" => "true", "stream.fsync" => "0", "stream.gets" => "nil", "stream.eof?" => "true",
    "stream.readpartial(1)" => "IOError", "stream.sysread(1)" => "IOError", "stream.read_nonblock(1)" => "IOError",
    "stream.read_nonblock(1, exception: false)" => "nil", "stream.close; stream.syswrite('x')" => "IOError",
    "stream.close; stream.puts('x')" => "IOError", "stream.close; stream.write('x')" => "IOError", "stream.close; stream << 'x'" => "IOError"
  }.freeze

  def test_the_stream_behaves_like_an_io
    server = serve(unlinted(<<~RUBY))
      code = env["HTTP_X_CODE"]
      body = lambda do |stream|
        Notes.add(begin
          eval(code).inspect
        rescue IOError
          "IOError"
        end)
        stream.close
      end
      [200, {}, body]
    RUBY
    client = connect(server)

    RESULTS.each_with_index do |(code, result), index|
      assert_equal 200, client.get("/", "x-code" => code).status
      assert_equal result, wait_for_notes(server, index + 1).last, code
    end
  end

  def test_it_is_written_to_as_to_an_io
    server = serving("stream.syswrite('a'); stream.print('b', 1); stream.printf('%03d', 7); stream.puts('c', %w[d e\n], nil); " \
                     "stream.write_nonblock('f')")

    assert_equal "ab1007c\nd\ne\n\nf", get(server).body
  end

  def test_nothing_follows_what_was_closed
    server = serving("stream.write('a'); stream.close; begin; stream.write('b'); rescue IOError; end")

    assert_equal "a", get(server).body
  end

  def test_a_thread_of_the_application_may_write_while_the_call_waits_for_it
    server = serving("Thread.new { stream << 'from' << ' there' }.join")

    assert_equal "from there", get(server).body
  end

  def test_a_length_that_the_application_announces_is_kept_to
    server = serve(unlinted("[200, { 'content-length' => '4' }, ->(stream) { stream << 'ab'; stream << 'cd' }]"))

    assert_equal %w[abcd 4], get(server).then { |answer| [answer.body, answer["content-length"]] }
  end

  def test_a_client_of_1_0_gets_it_until_the_connection_ends
    answer = connect(serving("stream << 'ab'; stream << 'cd'")).write("GET / HTTP/1.0\r\n\r\n").answer

    assert_equal ["abcd", nil], [answer.body, answer["transfer-encoding"]]
  end

  def test_writing_to_a_client_that_is_gone_raises_an_io_error
    server = serving("begin; 10_000.times { stream.write('x' * 10_000); sleep 0.01 }; rescue IOError => e; Notes.add(e.class); raise; end")
    client = connect(server).request
    client.read_through("xxx")
    client.reset

    assert_equal ["Fairlead::ClosedError"], wait_for_notes(server, 1)
    assert_equal 200, connect(server).request("HEAD").answer(to: "HEAD").status
    refute_includes server.stderr, "Error", "a client that disconnects is not an error of the application"
  end

  def test_under_rack_lint
    skip "Rack 2 has no streaming bodies" unless rack?("3")
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, ->(stream) { stream.write('a'); stream << 'b'; stream.flush; stream.close }]"))

    assert_equal "ab", get(server).body
  end

  private

  # Starts a server that calls +code+ with the stream of every body.
  def serving(code) = serve(unlinted("[200, {}, ->(stream) { begin; #{code}; ensure; stream.close; end }]"))
end
