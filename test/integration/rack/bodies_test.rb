# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Every kind of body (Rack SPEC, "The Body"): the method that the server uses, and the bytes that the client gets.
class BodiesTest < Minitest::Test
  include Fairlead::Test::HttpServing

  def test_an_array
    assert_body "one two", "['one', ' ', 'two']"
  end

  def test_an_array_with_a_nil_or_anything_but_strings_is_an_error_of_the_application
    ["['a', nil]", "[1]", "[:a]", "Enumerator.new { |out| out << 1 }"].each do |body|
      server = serving(body)
      assert_equal 500, get(server).status, body
      server.wait_for_output(/must yield Strings \(TypeError\)/)
    end
  end

  def test_something_that_only_yields
    assert_body "one two", "Class.new { def each = %w[one \\  two].each { |part| yield part } }.new"
  end

  def test_nil_and_empty_parts_of_what_yields_are_skipped
    assert_body "ab", "Enumerator.new { |out| out << 'a' << nil << '' << 'b' << '' }"
  end

  def test_parts_are_sent_when_they_are_yielded
    server = serving("Enumerator.new { |out| out << 'first'; sleep 0.01 until File.exist?('go'); out << 'second' }")
    client = connect(server).request

    client.read_through("5\r\nfirst\r\n")
    refute client.readable?
    server.write("go", "")

    assert_equal "6\r\nsecond\r\n", client.read_through("second\r\n")
  end

  def test_to_ary_is_preferred_to_each
    server = serving("Class.new { def to_ary = %w[one two]\ndef each = raise('each') }.new")

    assert_equal %w[onetwo 6], get(server).then { |answer| [answer.body, answer["content-length"]] }
  end

  def test_a_to_ary_that_gives_nil_is_passed_over
    assert_body "each", "Class.new { def to_ary = nil\ndef each = yield('each') }.new"
  end

  # Like bodies of Rails 7.1 to 8.0, which yield in #to_ary without a block.
  JUMPING = "Class.new { def to_ary = (Notes.add('to_ary'); raise LocalJumpError, 'no block given (yield)')\ndef each = yield('tent') }.new"

  def test_to_ary_is_not_called_when_the_head_has_a_framing
    { "'content-length' => '4'" => "tent", "'transfer-encoding' => 'identity'" => "tent", "'Content-Length' => '4'" => "tent" }.each do |field, body|
      server = serve(unlinted("[206, { #{field}, 'content-range' => 'bytes 3-6/7' }, #{JUMPING}]"))
      client = connect(server).request

      assert_match(%r{\AHTTP/1\.1 206 .*\r\n\r\n\z}m, client.read_through("\r\n\r\n"))
      assert_equal body, client.read(4)
      assert_empty notes(server), field
    end
  end

  def test_a_to_ary_that_raises_is_passed_over
    ["raise LocalJumpError", "yield", "missing", "raise ArgumentError", "7"].each do |code|
      assert_body "each", "Class.new { def to_ary = (#{code})\ndef each = yield('each') }.new"
    end
  end

  def test_what_each_raises_then_is_the_error_and_what_ends_the_thread_is_not_stopped
    server = serving("Class.new { def to_ary = raise('first')\ndef each = raise('second') }.new")
    assert_equal 500, get(server).status
    server.wait_for_output(/second \(RuntimeError\)/)
    ["raise Interrupt", "exit", "Thread.current.kill", "raise NotImplementedError"].each do |code|
      server = serving("Class.new { def to_ary = (#{code})\ndef each = Notes.add('each') }.new")
      connect(server).request("GET", "/", { "connection" => "close" }).rest
      assert_empty notes(server), code
    end
  end

  def test_each_is_preferred_to_call
    assert_body "each", "Class.new { def each = yield('each')\ndef call(stream) = raise('call') }.new"
  end

  def test_what_is_no_body_is_an_error_of_the_application
    ["nil", "7", "'a string'", "Object.new"].each do |body|
      server = serving(body)
      assert_equal 500, get(server).status, body
      server.wait_for_output(/body must respond to each or call/)
    end
  end

  def test_a_file_is_sent_whole
    server = serving("File.open('file')", files: { "file" => (content = Random.new(1).bytes(3_000_000)) })

    assert_equal ["3000000", content], get(server).then { |answer| [answer["content-length"], answer.body] }
  end

  def test_a_file_that_to_path_names_is_sent_without_each
    server = serving("Class.new { def to_path = 'file'\ndef each = raise('each') }.new", files: { "file" => "content" })
    client = connect(server)

    2.times { assert_equal %w[content 7], client.get.then { |answer| [answer.body, answer["content-length"]] } }
  end

  # Objects that Ruby accepts as a path.
  PATHS = ["Pathname.new('file')", "File.new('file')", "Class.new { def to_str = 'file' }.new", "Class.new { def to_path = 'file' }.new"].freeze

  def test_whatever_ruby_takes_for_a_path_names_a_file
    PATHS.each do |path|
      body = "Class.new { def to_path = #{path}\ndef each = raise('each') }.new"
      server = serving(body, setup: "require 'pathname'", files: { "file" => "content" })

      assert_equal %w[content 7], get(server).then { |answer| [answer.body, answer["content-length"]] }, path
    end
  end

  def test_an_empty_file
    assert_equal ["", "0"], get(serving("File.open('file')", files: { "file" => "" })).then { |answer| [answer.body, answer["content-length"]] }
  end

  def test_a_part_of_a_file_is_what_each_yields
    server = serving("Class.new { def to_path = 'file'\ndef each = yield('tent') }.new", headers: "{ 'content-length' => '4' }",
                                                                                       files: { "file" => "content" })

    assert_equal %w[tent 4], get(server).then { |answer| [answer.body, answer["content-length"]] }
  end

  def test_what_to_path_names_and_is_no_file_is_passed_over
    ["'missing'", "'/'", "'/dev/null'", "nil", "7", "\"a\\0b\"", "Object.new", "'a'.encode('UTF-16LE')"].each do |path|
      assert_body "each", "Class.new { def to_path = #{path}\ndef each = yield('each') }.new"
    end
  end

  def test_rack_files_whole_in_part_and_head
    server = serve(linted("Rack::Files.new(Dir.pwd).call(env)"), files: { "file.txt" => "0123456789" })
    client = connect(server)

    assert_equal [200, "0123456789"], client.get("/file.txt").then { |answer| [answer.status, answer.body] }
    assert_equal [206, "2345"], client.get("/file.txt", "range" => "bytes=2-5").then { |answer| [answer.status, answer.body] }
    assert_equal [200, "10"], client.request("HEAD", "/file.txt").answer(to: "HEAD").then { |answer| [answer.status, answer["content-length"]] }
    assert_equal 404, client.get("/missing").status
  end

  def test_rack_lint_replaces_none_of_them
    ["['linted']", "Enumerator.new { |out| out << 'lin' << 'ted' }", "File.open('file')"].each do |body|
      server = serve(linted("[200, { 'content-type' => 'text/plain' }, #{body}]"), files: { "file" => "linted" })
      assert_equal "linted", get(server).body, body
    end
  end

  private

  def serving(body, headers: "{}", setup: "", **options)
    serve(unlinted("[200, #{headers}, #{body}]", setup: setup), **options)
  end

  def assert_body(expected, body)
    client = connect(serving(body))

    2.times { assert_equal expected, client.get.body, body }
  end
end
