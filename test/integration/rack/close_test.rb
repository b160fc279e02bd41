# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# For every outcome of a response, its body is closed: once, by the thread that called the application, before that thread
# takes the next request.
class CloseTest < Minitest::Test
  include Fairlead::Test::HttpServing

  SETUP = <<~RUBY
    class Body
      def initialize(code = "yield 'part'") = @code = code
      def close = Notes.add("closed \#{Thread.current == $caller}")
    end

    class EachBody < Body
      def each(&block) = instance_eval(@code.gsub("yield", "block.call"))
    end

    class ArrayBody < EachBody
      def to_ary = ["part"]
    end

    class FileBody < EachBody
      def to_path = "file"
    end

    class CallBody < Body
      def call(stream)
        instance_eval(@code.gsub("yield", "stream.write"))
        stream.close
      end
    end

    def (SINGLE = ["part"]).close = Notes.add("closed \#{Thread.current == $caller}")
  RUBY

  # Class of body => its whole content.
  KINDS = { "EachBody.new" => "part", "ArrayBody.new" => "part", "FileBody.new" => "content", "CallBody.new" => "part", "SINGLE" => "part" }.freeze

  def test_it_is_closed_once_when_all_is_sent
    KINDS.each { |body, content| assert_closed_once(serving(200, body)) { |client| assert_equal content, client.get.body } }
  end

  def test_it_is_closed_for_head
    KINDS.each_key { |body| assert_closed_once(serving(200, body)) { |client| client.request("HEAD").answer(to: "HEAD") } }
  end

  def test_it_is_closed_for_answers_without_body
    [204, 304].each do |status|
      KINDS.each_key { |body| assert_closed_once(serving(status, body), &:get) }
    end
  end

  def test_it_is_closed_for_an_invalid_status_or_head
    assert_closed_once(serving(99, "EachBody.new")) { |client| assert_equal 500, client.get.status }
    assert_closed_once(serving(200, "EachBody.new", "nil")) { |client| assert_equal 500, client.get.status }
    assert_closed_once(serving(200, "EachBody.new", "{ 'content-length' => '2' }")) { |client| assert_equal "pa", client.get.body }
  end

  def test_it_is_closed_when_it_raises_at_once
    assert_closed_once(serving(200, "EachBody.new('raise')")) { |client| assert_equal 500, client.get.status }
  end

  def test_it_is_closed_when_it_raises_in_the_middle
    ["EachBody.new('yield 1.to_s; raise')", "CallBody.new('yield 1.to_s; raise')", "CallBody.new('raise')",
     "EachBody.new('yield 1.to_s; throw :nowhere')", "EachBody.new('yield 1.to_s; exit')"].each do |body|
      assert_closed_once(serving(200, body)) { |client| assert_raises(Fairlead::Test::HttpClient::CutOff, body) { client.get } }
    end
  end

  def test_it_is_closed_when_the_client_has_gone
    ["EachBody.new('10_000.times { yield %q(x) * 10_000; sleep 0.01 }')",
     "CallBody.new('10_000.times { yield %q(x) * 10_000; sleep 0.01 }')"].each do |body|
      assert_closed_once(serving(200, body)) do |client|
        client.request.read_through("xxx")
        client.reset
      end
    end
  end

  def test_it_is_closed_when_the_thread_is_killed_in_it
    assert_closed_once(serving(200, "EachBody.new('yield 1.to_s; Thread.current.kill')")) { |client| client.request.rest }
  end

  def test_it_is_closed_before_the_thread_takes_the_next_request
    server = serving(200, "EachBody.new", setup: "", before: "Notes.add('called'); ")
    client = connect(server)
    client.request.request.request
    3.times { client.answer }

    assert_equal(%w[called closed] * 3, wait_for_notes(server, 6).map { |note| note.split.first })
  end

  def test_a_close_that_raises_costs_neither_answer_nor_connection
    server = serve(unlinted("[200, {}, Rack::BodyProxy.new(Enumerator.new { |out| out << 'ok' }) { raise 'in close' }]"))
    client = connect(server)

    2.times { assert_equal "ok", client.get.body }
    wait_until("the log") { server.stderr.scan("in close (RuntimeError)").size == 2 }
  end

  def test_the_client_has_its_answer_before
    server = serve(unlinted("[200, {}, Rack::BodyProxy.new(Enumerator.new { |out| out << 'ok' }) { sleep 0.01 until File.exist?('go') }]"))

    assert_equal "ok", get(server).body
    server.write("go", "")
  end

  def test_a_body_proxy_runs_its_block_once
    ["['ok']", "Enumerator.new { |out| out << 'ok' }", "File.open('file')"].each do |body|
      server = serve(linted("[200, { 'content-type' => 'text/plain' }, Rack::BodyProxy.new(#{body}) { Notes.add('closed') }]"),
                     files: { "file" => "ok" })
      client = connect(server)
      2.times { assert_equal "ok", client.get.body }
      assert_equal %w[closed closed], wait_for_notes(server, 2)
    end
  end

  private

  def serving(status, body, headers = "{}", setup: "", before: "")
    serve(unlinted("$caller = Thread.current; #{before}[#{status}, #{headers}, #{body}]", setup: SETUP + setup), "-t", "1",
          files: { "file" => "content" })
  end

  # Yields a client; then there must be one note of a close, and still only one after the next request.
  def assert_closed_once(server)
    client = connect(server)
    yield client
    assert_equal ["closed true"], wait_for_notes(server, 1)
    connect(server).request("HEAD").answer(to: "HEAD")
    assert_equal ["closed true"] * 2, wait_for_notes(server, 2)
  end
end
