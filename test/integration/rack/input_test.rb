# frozen_string_literal: true

require "test_helper"
require "json"
require "support/http_client"
require "support/processes"
require "support/rack_apps"

# `rack.input`: the same behaviour without a body, with one in memory and with one in a file.
class InputTest < Minitest::Test
  include Fairlead::Test::HttpServing

  MEMORY = 16
  BODIES = { empty: "", memory: "ab\ncd\n\nef", file: "first\n#{"\xFFx" * 20_000}\nlast" }.freeze

  # Each is evaluated with the input as `io`, and with a StringIO of the same bytes in this process.
  CALLS = [
    "io.read", "[io.read, io.read]", "[io.read(3), io.read]", "io.read(0)", "[io.read, io.read(0)]", "[io.read, io.read(1)]",
    "[io.read(2), io.read(2), io.read(100_000), io.read(1)]", "io.read(nil)",
    "b = +'old'; [io.read(3, b).equal?(b) || b, b]", "b = +'old'; io.read; [io.read(3, b), b]",
    "b = +'old'; [io.read(nil, b), b]", "b = +'old'; [io.read(0, b), b]",
    "[io.gets, io.gets, io.gets, io.gets, io.gets]", "l = []; io.each { |line| l << line }; l",
    "io.read; l = []; io.each { |line| l << line }; l",
    "io.read; io.rewind; io.read", "io.gets; io.rewind; io.gets", "io.read(3); io.rewind; l = []; io.each { |line| l << line }; l",
    "io.size", "io.read; io.size", "[io.eof?, io.read, io.eof?]", "io.read.encoding", "(io.read(1) || ''.b).encoding",
    "(io.gets || ''.b).encoding", "io.external_encoding", "[io.pos, io.read(2), io.pos]", "io.binmode; io.read(2)"
  ].freeze

  def test_it_reads_like_a_binary_string_io
    server = serve(unlinted("io = env['rack.input']\n[200, { 'content-type' => 'text/plain' }, [eval(env['HTTP_X_CODE']).inspect.b]]"),
                   "--body-memory-bytes", MEMORY)
    client = connect(server)

    BODIES.each do |kind, body|
      CALLS.each do |code|
        answer = client.request("POST", "/", { "x-code" => code, "content-length" => body.bytesize }, body: body).answer
        assert_equal [200, reference(code, body)], [answer.status, answer.body.force_encoding("UTF-8")], "#{kind}: #{code}"
      end
    end
  end

  def test_the_application_may_close_it
    server = serve(unlinted("env['rack.input'].close; [204, {}, []]"), "--body-memory-bytes", MEMORY)

    BODIES.each { |kind, body| 2.times { assert_equal 204, ask(server, "POST", "/", {}, body).status, kind } }
  end

  def test_it_stands_the_scrutiny_of_rack_lint
    server = serve(linted(<<~RUBY), "--body-memory-bytes", MEMORY)
      io = env["rack.input"]
      parts = [io.gets, io.read(2), io.read(2, +""), io.read]
      #{"io.rewind" unless rack?("3")}
      lines = []
      io.each { |line| lines << line }
      [200, { "content-type" => "text/plain" }, [parts.compact.sum(&:bytesize).to_s]]
    RUBY

    BODIES.each { |kind, body| assert_equal body.bytesize.to_s, ask(server, "POST", "/", {}, body).body, kind }
  end

  def test_there_is_no_path_to_tell_of_a_file_without_name
    server = serve(unlinted(<<~RUBY), "--body-memory-bytes", MEMORY)
      io = env["rack.input"]
      open = Dir["/proc/self/fd/*"].filter_map { |fd| File.readlink(fd) rescue nil }.grep(/deleted/).size
      [200, { "content-type" => "text/plain" }, [[io.respond_to?(:path), io.respond_to?(:to_path), open].inspect]]
    RUBY
    *paths, others = JSON.parse(ask(server, "POST", "/", {}, BODIES[:memory]).body)

    assert_equal [false, false], paths
    assert_equal [false, false, others + 1].inspect, ask(server, "POST", "/", {}, BODIES[:file]).body
  end

  def test_the_temporary_folder_stays_empty
    server = serve(linted("Notes.add(Dir.children('temporary').size); [204, {}, []]"), "--body-memory-bytes", MEMORY,
                   "--temp-dir", "temporary", files: { "temporary/.keep" => "" })

    assert_equal 204, ask(server, "POST", "/", {}, BODIES[:file]).status
    assert_equal ["1"], notes(server)
  end

  def test_many_large_bodies_leave_no_descriptors_behind
    server = serve(linted("env['rack.input'].read(1); [204, {}, []]"), "--body-memory-bytes", MEMORY)
    client = connect(server)
    client.request("POST", "/", {}, body: BODIES[:file]).answer
    before = Fairlead::Test::Processes.descriptors(server.serving_pid)
    100.times { client.request("POST", "/", {}, body: BODIES[:file]).answer }

    assert_operator Fairlead::Test::Processes.descriptors(server.serving_pid), :<=, before + 2
  end

  def test_forms_and_uploads_are_understood_by_rack
    server = serve(linted(<<~RUBY), "--body-memory-bytes", MEMORY)
      request = Rack::Request.new(env)
      file = request.params["file"]
      [200, { "content-type" => "text/plain" }, ["\#{request.params["a"]} \#{file && file[:tempfile].read.size}"]]
    RUBY
    upload = "--x\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n" \
             "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n#{"z" * 5000}\r\n--x--\r\n"

    assert_equal "b c ", ask(server, "POST", "/", { "content-type" => "application/x-www-form-urlencoded" }, "a=b+c&d=#{"e" * 100}").body
    assert_equal "1 5000", ask(server, "POST", "/", { "content-type" => "multipart/form-data; boundary=x" }, upload).body
  end

  private

  def reference(code, body)
    io = StringIO.new(body.b)
    io.set_encoding(Encoding::BINARY)
    eval(code, binding).inspect.b.force_encoding("UTF-8") # rubocop:disable Security/Eval -- only the constant above
  end
end
