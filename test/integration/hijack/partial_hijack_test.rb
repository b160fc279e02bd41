# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Partial hijack (Rack SPEC, "Hijacking"): the server sends the head, and the `rack.hijack` in it gets the rest of the
# connection.
class PartialHijackTest < Minitest::Test
  include Fairlead::Test::HttpServing

  parallelize_me!

  def test_the_stream_follows_the_head
    server = hijacking("stream.write('one'); stream << 'two' << 'three'; stream.flush; stream.close", "x" => "y")
    client = connect(server).request
    head = client.read_through("\r\n\r\n")

    assert_match(%r{\AHTTP/1\.1 200 OK\r\n}, head)
    assert_match(/^x: y\r$/, head)
    assert_match(/^connection: close\r$/, head)
    refute_match(/^(rack\.hijack|content-length|transfer-encoding):/, head)
    assert_equal "onetwothree", client.rest
  end

  def test_the_length_that_the_application_announces_is_sent
    server = hijacking("stream.write('three'); stream.close", "content-length" => "5")

    %w[1.0 1.1].each do |version|
      answer = connect(server).write("GET / HTTP/#{version}\r\nhost: a\r\n\r\n").rest
      assert_match(/^content-length: 5\r$.*\r\n\r\nthree\z/m, answer, version)
      refute_match(/^transfer-encoding:/, answer, version)
    end
  end

  def test_the_client_can_go_on_talking
    server = hijacking("stream.write('you said ' + stream.read(5)); stream.close")
    client = connect(server).write("GET / HTTP/1.1\r\nhost: a\r\n\r\nhe")
    client.read_through("\r\n\r\n")
    client.write("llo")

    assert_equal "you said hello", client.rest
  end

  def test_the_head_is_sent_before_the_call
    server = hijacking("sleep 0.01 until File.exist?('go'); stream.close")
    client = connect(server).request
    client.read_through("\r\n\r\n")
    server.write("go", "")

    assert client.closed?
  end

  def test_the_log_says_that_descriptors_are_short
    server = serve(<<~RUBY)
      FILES = []
      body = []
      def body.close = FILES.each(&:close).clear
      run lambda { |env|
        Process.setrlimit(:NOFILE, Dir.children("/proc/self/fd").size + 10)
        begin
          loop { FILES << File.open(File::NULL) }
        rescue Errno::EMFILE
          [200, { "rack.hijack" => proc { |stream| stream.close } }, body]
        end
      }
    RUBY
    connect(server).request.rest

    server.wait_for_output(/no socket can be given away: too few descriptors, or too little memory \(IOError\)/)
  end

  def test_the_stream_can_be_kept
    server = hijacking("Thread.new { sleep 0.01 until File.exist?('go'); stream.write('late'); stream.close }")
    client = connect(server).request
    client.read_through("\r\n\r\n")
    assert_equal 200, connect(server).request("HEAD").answer(to: "HEAD").status
    server.write("go", "")

    assert_equal "late", client.rest
  end

  def test_the_body_is_closed_and_not_used
    server = serve(unlinted(<<~RUBY))
      body = Rack::BodyProxy.new(Enumerator.new { Notes.add("used") }) { Notes.add("closed") }
      [200, { "rack.hijack" => ->(stream) { stream.write("stream"); stream.close } }, body]
    RUBY
    client = connect(server).request
    client.read_through("\r\n\r\n")

    assert_equal "stream", client.rest
    assert_equal ["closed"], wait_for_notes(server, 1)
  end

  # Calls of the application => results.
  METHODS = {
    "stream.closed?" => "false", "stream.write('a')" => "1", "(stream << 'a').equal?(stream)" => "true",
    "stream.close; stream.closed?" => "true", "(stream.close; stream.write('a')) rescue $!.is_a?(IOError)" => "true",
    "stream.close_write; 1" => "1", "stream.close_read; 1" => "1",
    "%i[read write << flush close close_read close_write closed?] - stream.methods" => "[]"
  }.freeze

  def test_the_stream_behaves_like_an_io
    server = hijacking("Notes.add(eval(env['HTTP_X_CODE']).inspect); stream.close unless stream.closed?")
    METHODS.each_with_index do |(code, result), index|
      connect(server).request("GET", "/", { "x-code" => code }).rest

      assert_equal result, wait_for_notes(server, index + 1).last, code
    end
  end

  def test_what_the_callable_raises_is_logged_and_ends_the_connection
    server = hijacking("stream.write('x'); raise KeyError, 'in the stream'")
    client = connect(server).request
    client.read_through("\r\n\r\n")

    assert_equal "x", client.rest
    server.wait_for_output(/in the stream/)
  end

  def test_a_head_request_has_no_stream_to_speak_of
    server = hijacking("Notes.add('called'); stream.close")

    assert_equal 200, connect(server).request("HEAD").answer(to: "HEAD").status
  end

  def test_a_client_that_leaves_is_an_io_error
    server = hijacking("begin; loop { stream.write('x' * 10_000) }; rescue IOError, SystemCallError => e; Notes.add('gone'); end; stream.close")
    client = connect(server).request
    client.read_through("xxx")
    client.reset

    assert_equal ["gone"], wait_for_notes(server, 1)
    refute_includes server.stderr, "Error"
  end

  private

  def hijacking(code, headers = {})
    serve(unlinted("[200, #{headers.inspect}.merge('rack.hijack' => ->(stream) { #{code} }), []]"))
  end
end
