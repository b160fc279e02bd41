# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# `Expect: 100-continue` (RFC 9110 §10.1.1).
class ExpectContinueTest < Minitest::Test
  include Fairlead::Test::HttpServing

  ECHO = '[200, { "content-type" => "text/plain" }, [env["rack.input"].read]]'
  HEAD = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n"

  def test_a_client_that_waits_is_told_to_go_on
    server = serve(linted(ECHO))
    client = connect(server)

    interim = client.write("#{HEAD}content-length: 3\r\n\r\n").answer
    assert_equal [100, "Continue", []], [interim.status, interim.reason, interim.fields]
    answer = client.write("abc").answer

    assert_equal [200, "abc"], [answer.status, answer.body]
  end

  def test_it_goes_for_chunked_bodies_and_for_every_request_of_a_connection
    server = serve(linted(ECHO))
    client = connect(server)

    3.times do
      assert_equal 100, client.write("#{HEAD}transfer-encoding: chunked\r\n\r\n").answer.status
      assert_equal "abc", client.write("3\r\nabc\r\n0\r\n\r\n").answer.body
    end
  end

  def test_the_expectation_is_read_in_any_case
    server = serve(linted(ECHO))
    client = connect(server)

    client.write("POST / HTTP/1.1\r\nhost: a\r\nExpect: 100-Continue\r\ncontent-length: 1\r\n\r\n")

    assert_equal 100, client.answer.status
  end

  def test_a_client_that_does_not_wait_is_not_told
    server = serve(linted(ECHO))
    client = connect(server)

    answer = client.write("#{HEAD}content-length: 3\r\n\r\nabc").answer

    assert_equal [200, "abc"], [answer.status, answer.body]
  end

  def test_there_is_no_interim_answer_where_no_body_will_come
    server = serve(linted(ECHO))
    client = connect(server)

    assert_equal 200, client.write("GET / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n\r\n").answer.status
    assert_equal 200, client.write("#{HEAD}content-length: 0\r\n\r\n").answer.status
  end

  def test_a_client_of_1_0_gets_no_interim_answer
    server = serve(linted(ECHO))
    client = connect(server)

    client.write("POST / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
    client.write("abc")

    assert_equal [200, "abc"], client.answer.then { |answer| [answer.status, answer.body] }
  end

  def test_a_body_that_would_be_too_large_is_refused_instead
    server = serve(linted("Notes.add(1)\n#{ECHO}"), "--body-max-bytes", "10")
    client = connect(server)

    assert_equal 413, client.write("#{HEAD}content-length: 11\r\n\r\n").answer.status
    assert_predicate client, :closed?
    assert_empty notes(server)
  end

  def test_any_other_expectation_fails
    server = serve(linted(ECHO))

    ["expect: 200-ok\r\n", "expect: 100-continue, x\r\n", "expect: 100-continue\r\nexpect: y\r\n"].each do |field|
      client = connect(server)
      assert_equal 417, client.write("POST / HTTP/1.1\r\nhost: a\r\n#{field}content-length: 1\r\n\r\n").answer.status, field
      assert_predicate client, :closed?, field
    end
  end
end
