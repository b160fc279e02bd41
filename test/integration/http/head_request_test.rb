# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# HEAD: the head of the response to GET, and no byte of its body (RFC 9110 §9.3.2).
class HeadRequestTest < Minitest::Test
  include Fairlead::Test::HttpServing

  BODIES = {
    array: '["hello", " world"]',
    each: 'Enumerator.new { |out| Notes.add("each"); out << "hello world" }',
    call: '->(stream) { Notes.add("call"); stream.write("hello world"); stream.close }',
    file: 'File.open("hello.txt")'
  }.freeze

  def test_no_byte_of_a_body_follows_and_the_connection_goes_on
    BODIES.each_key do |kind|
      client = connect(server = serving(kind))
      client.request("HEAD").request("HEAD").request("GET")

      2.times { assert_equal [200, ""], client.answer(to: "HEAD").then { |answer| [answer.status, answer.body] }, kind }
      assert_equal "hello world", client.answer.body, kind
      assert_operator notes(server).size, :<=, 1, "#{kind}: HEAD must not use the body"
    end
  end

  def test_the_length_is_told_where_it_is_known
    assert_equal "11", ask(serving(:array), "HEAD")["content-length"]
    assert_equal "11", ask(serving(:file), "HEAD")["content-length"]
    assert_nil ask(serving(:each), "HEAD")["content-length"]
    assert_nil ask(serving(:call), "HEAD")["content-length"]
  end

  def test_the_length_that_the_application_tells_is_passed_on
    server = serve(linted('[200, { "content-type" => "text/plain", "content-length" => "4711" }, []]'))

    assert_equal "4711", ask(server, "HEAD")["content-length"]
  end

  def test_the_connection_of_a_client_of_1_0_that_wants_so_persists
    client = connect(serving(:array))

    2.times do
      client.write("HEAD / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
      assert_equal "keep-alive", client.answer(to: "HEAD")["connection"]
    end
  end

  private

  def serving(kind)
    serve(unlinted("[200, { 'content-type' => 'text/plain' }, #{BODIES.fetch(kind)}]"), files: { "hello.txt" => "hello world" })
  end
end
