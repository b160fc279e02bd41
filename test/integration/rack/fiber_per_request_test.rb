# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# fiber_per_request: Thread.current is clean for the next request, and everything else is the same as without the option.
class FiberPerRequestTest < Minitest::Test
  include Fairlead::Test::HttpServing

  CutOff = Fairlead::Test::HttpClient::CutOff

  LEAVE = <<~'RUBY'
    before = Thread.current[:left]
    Thread.current[:left] = "here"
    body = Enumerator.new { |out| out << before.inspect << " " << Thread.current[:left].inspect }
    env["rack.after_reply"] << -> { Notes.add(Thread.current[:left].inspect) }
    [200, {}, body]
  RUBY

  def test_locals_of_fibers_live_as_long_as_their_request
    server = serving(LEAVE)
    client = connect(server)

    3.times { assert_equal 'nil "here"', client.get.body }
    assert_equal ['"here"'], wait_for_notes(server, 3).uniq
  end

  def test_without_they_live_as_long_as_their_thread
    client = connect(serve(unlinted(LEAVE), "-t", "1:1"))

    assert_equal ['nil "here"', '"here" "here"'], Array.new(2) { client.get.body }
  end

  # Code of an application => response.
  CODES = {
    "raise 'no'" => 500,
    "throw :nowhere" => 500,
    "Fiber.yield; Fiber.yield(1); [200, {}, ['ok']]" => 200,
    "Fiber.new { Fiber.yield 1 }.resume; [200, {}, ['ok']]" => 200,
    "GC.start; GC.compact if GC.respond_to?(:compact); [200, {}, [env['PATH_INFO']]]" => 200,
    "[200, {}, ['x'] + Array.new(50) { |n| 'x' * (n * 1000) }]" => 200,
    "$kept = Fiber.current; [200, {}, ['ok']]" => 200,
    "begin; $kept.resume; rescue FiberError; end; [200, {}, ['ok']]" => 200,
    "[200, {}, ->(stream) { stream.write('ok'); stream.close }]" => 200,
    "def self.deep = deep; deep" => 500,
    "io = env['rack.hijack'].call; io.write(\"HTTP/1.1 204 No Content\\r\\n\\r\\n\"); io.close" => 204
  }.freeze

  def test_everything_else_is_as_without
    server = serving("eval(env['HTTP_X_CODE'])")

    2.times { CODES.each { |code, status| assert_equal status, get(server, "/", "x-code" => code).status, code } }
  end

  def test_a_thread_that_is_killed_is_replaced
    server = serving("Thread.current.kill if env['PATH_INFO'] == '/kill'; [200, {}, []]")

    3.times do
      assert_raises(CutOff) { get(server, "/kill") }
      assert_equal 200, get(server).status
    end
    refute_includes server.stderr, "BUG"
  end

  def test_a_process_that_the_application_forks_ends_as_it_wants_to
    server = serving(<<~'RUBY')
      statuses = [-> { exit(7) }, -> { raise "child" }, -> { exit!(9) }].map { |ending| Process.wait2(fork(&ending)).last.exitstatus }
      pid = fork or exit(8) # this process continues in the request
      [200, {}, [[*statuses, Process.wait2(pid).last.exitstatus].join(" ")]]
    RUBY

    assert_equal "7 1 9 8", get(server).body
    refute_includes server.stderr, "BUG"
  end

  def test_a_timeout_and_an_exception_from_outside_arrive
    server = serving(<<~RUBY)
      require "timeout"
      Timeout.timeout(0.05) { sleep }
    RUBY

    2.times { assert_equal 500, get(server).status }
    assert_logged("(Timeout::Error)", server)
  end

  private

  # One thread, so that it also runs the next request.
  def serving(code)
    serve(unlinted(code), "-t", "1:1", "--fiber-per-request")
  end
end
