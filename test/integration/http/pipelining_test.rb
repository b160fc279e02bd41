# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Several requests sent at once (RFC 9112 §9.3.2): responses in order, and a turn for every client.
class PipeliningTest < Minitest::Test
  include Fairlead::Test::HttpServing

  ECHO = '[200, { "content-type" => "text/plain" }, [env["PATH_INFO"], env["rack.input"].read]]'

  # Numbers the requests in the order of their runs; the first one waits for the test.
  NUMBERED = <<~RUBY
    number = (NUMBERS << NUMBERS.size + 1).last
    sleep 0.005 until number > 1 || File.exist?("go")
    [200, { "content-type" => "text/plain" }, [number.to_s]]
  RUBY

  def test_answers_come_in_the_order_of_the_requests
    server = serve(linted(ECHO), "-t", "5")
    client = connect(server)

    client.write((1..200).map { |number| "GET /#{number} HTTP/1.1\r\nhost: a\r\n\r\n" }.join)

    assert_equal((1..200).map { |number| "/#{number}" }, Array.new(200) { client.answer.body })
  end

  def test_bodies_of_every_kind_end_where_the_next_request_begins
    server = serve(linted(ECHO))
    client = connect(server)

    client.write("POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\none" \
                 "POST /b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n" \
                 "POST /c HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n" \
                 "GET /d HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal %w[/aone /btwo /c /d], Array.new(4) { client.answer.body }
  end

  def test_a_body_that_the_application_does_not_read_is_not_taken_for_a_request
    server = serve(linted('[200, { "content-type" => "text/plain" }, [env["PATH_INFO"]]]'))
    client = connect(server)
    hidden = "GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n"

    %w[GET POST DELETE].each do |method|
      client.request(method, "/open", {}, body: hidden).request("GET", "/next")
      assert_equal %w[/open /next], Array.new(2) { client.answer.body }, method
    end
  end

  def test_a_pipelined_request_may_arrive_in_two_parts
    server = serve(linted(ECHO))
    client = connect(server)

    client.write("GET /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HT")
    assert_equal "/1", client.answer.body
    client.write("TP/1.1\r\nhost: a\r\n\r\n")

    assert_equal "/2", client.answer.body
  end

  def test_a_client_with_200_requests_waiting_does_not_hold_up_another_one
    server = serve(linted(NUMBERED, setup: "NUMBERS = []"), "-t", "1")
    greedy = connect(server)
    greedy.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 200)
    modest = connect(server)
    modest.request
    server.write("go", "")

    assert_operator Integer(modest.answer.body, 10), :<=, 10
    assert_equal 200, Array.new(200) { greedy.answer.status }.count(200)
  end

  def test_three_pipelining_clients_take_turns
    server = serve(linted(NUMBERED, setup: "NUMBERS = []"), "-t", "1")
    gate = connect(server)
    gate.request
    clients = Array.new(3) { connect(server).write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 20) }
    server.write("go", "")
    gate.answer

    numbers = clients.map { |client| Array.new(20) { Integer(client.answer.body, 10) } }

    numbers.each { |own| own.each_cons(2) { |before, after| assert_operator after - before, :<=, 6, numbers.inspect } }
  end
end
