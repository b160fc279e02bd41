# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Framing of a response (RFC 9112 §6.3, §8), above all if the application sets framing fields itself.
class ContentLengthTest < Minitest::Test
  include Fairlead::Test::HttpServing

  CutOff = Fairlead::Test::HttpClient::CutOff
  EACH = "Enumerator.new { |out| out << 'ab' << 'cd' }"

  def test_the_length_of_an_array_is_counted_in_bytes
    answer = get(serving("{}", "['ä', 'bc', '']"))

    assert_equal ["4", nil, "äbc".b], [answer["content-length"], answer["transfer-encoding"], answer.body]
  end

  def test_an_empty_array_has_length_zero
    assert_equal "0", get(serving("{}", "[]"))["content-length"]
  end

  def test_a_body_of_unknown_length_is_chunked
    answer = get(serving("{}", EACH))

    assert_equal [nil, "chunked", "abcd"], [answer["content-length"], answer["transfer-encoding"], answer.body]
  end

  def test_a_body_of_known_length_is_not_chunked
    answer = get(serving("{ 'Content-Length' => '4' }", EACH))

    assert_equal ["4", nil, "abcd"], [answer["content-length"], answer["transfer-encoding"], answer.body]
  end

  def test_a_length_may_be_an_integer
    assert_equal %w[4 abcd], get(serving("{ 'content-length' => 4 }", EACH)).then { |answer| [answer["content-length"], answer.body] }
  end

  def test_a_body_that_is_longer_than_announced_is_cut_and_complained_of
    ["['ab', 'cd']", EACH, "->(stream) { stream.write('abcd'); stream.close }"].each do |body|
      server = serving("{ 'content-length' => '3' }", body)
      client = connect(server)

      2.times { assert_equal "abc", client.get.body, body }
      server.wait_for_output(/body is longer than the announced content-length/)
    end
  end

  def test_a_body_that_is_shorter_than_announced_ends_the_connection_and_is_complained_of
    ["['ab', 'cd']", EACH, "->(stream) { stream.write('abcd'); stream.close }"].each do |body|
      server = serving("{ 'content-length' => '5' }", body)
      client = connect(server).request("GET", "/somewhere").request("GET", "/next")

      error = assert_raises(CutOff, body) { client.answer }
      assert_includes error.message, "4 of them not parsed", "bytes of another response follow"
      server.wait_for_output(%r{body is shorter than the announced content-length; the connection is closed \(/somewhere\)})
      refute_includes server.stderr, "/next"
    end
  end

  def test_a_length_that_is_none_is_not_sent
    ["x", "-1", "+4", "0x4", "4, 4", "", "4 ", "99999999999999999999"].each do |length|
      server = serving("{ 'content-length' => #{length.inspect} }", "['abcd']")
      answer = get(server)
      assert_equal %w[4 abcd], [answer["content-length"], answer.body], length
      server.wait_for_output(/content-length/)
    end
  end

  def test_of_two_lengths_only_one_is_sent
    answer = get(serving("[['content-length', '4'], ['Content-Length', '5']]", "['abcd']"))

    assert_equal %w[4 abcd], [answer["content-length"], answer.body]
  end

  def test_an_application_may_chunk_by_itself
    client = connect(serving("{ 'transfer-encoding' => 'chunked' }", "[\"3\\r\\nabc\\r\\n\", \"0\\r\\n\\r\\n\"]"))

    2.times do
      answer = client.get
      assert_equal ["abc", "chunked", nil, nil], [answer.body, *%w[transfer-encoding content-length connection].map { |name| answer[name] }]
    end
  end

  def test_the_length_beside_a_transfer_encoding_is_not_sent
    answer = get(serving("{ 'content-length' => '9', 'transfer-encoding' => 'chunked' }", "[\"3\\r\\nabc\\r\\n0\\r\\n\\r\\n\"]"))

    assert_equal ["abc", nil], [answer.body, answer["content-length"]]
  end

  def test_a_coding_that_does_not_end_with_chunked_ends_with_the_connection
    client = connect(serving("{ 'transfer-encoding' => 'gzip' }", "['abc']")).request

    head, body = client.rest.split("\r\n\r\n", 2)

    assert_includes head, "\r\ntransfer-encoding: gzip\r\n"
    assert_includes "#{head}\r\n", "\r\nconnection: close\r\n"
    assert_equal "abc", body
  end

  def test_a_file_with_a_transfer_encoding_of_its_own_is_sent_by_each
    server = serving("{ 'transfer-encoding' => 'chunked' }", "File.open('chunks')", files: { "chunks" => "3\r\nabc\r\n0\r\n\r\n" })

    assert_equal "abc", get(server).body
  end

  def test_a_client_of_1_0_gets_a_body_of_unknown_length_until_the_connection_ends
    client = connect(serving("{}", EACH))

    answer = client.write("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").answer

    assert_equal ["abcd", nil, nil, "close"], [answer.body, *%w[transfer-encoding content-length connection].map { |name| answer[name] }]
  end

  def test_a_client_of_1_0_gets_no_transfer_encoding_of_the_applications_either
    answer = connect(serving("{ 'transfer-encoding' => 'chunked' }", '["3\r\nabc\r\n0\r\n\r\n"]')).write("GET / HTTP/1.0\r\n\r\n").answer

    assert_equal ["abc", nil, "close"], [answer.body, answer["transfer-encoding"], answer["connection"]]
  end

  private

  def serving(headers, body, **options)
    serve(unlinted("[200, #{headers}, #{body}]"), **options)
  end
end
