# frozen_string_literal: true

require "test_helper"

# What the authority says, without an authority.
class AcmeClientTest < Minitest::Test
  Client = Fairlead::Acme::Client
  Response = Fairlead::Acme::Connection::Response
  DIRECTORY = "https://ca.example/directory"

  # Gives the responses that were put in, one after the other, and keeps what was asked.
  class Script
    attr_reader :asked

    def initialize(*responses)
      @responses = responses
      @asked = []
    end

    def request(method, url, text = nil, **)
      @asked << [method, url, text && JSON.parse(text)]
      @responses.shift || raise("nobody expected #{method} #{url}")
    end
  end

  def test_each_request_has_the_nonce_of_the_last_response
    script = Script.new(directory, response(200, nonce: "first"), response(200, nonce: "second"), response(200))
    client = client(script)
    2.times { client.post("https://ca.example/order") }

    assert_equal([%w[GET HEAD POST POST]], [script.asked.map(&:first)])
    assert_equal(%w[first second], script.asked.last(2).map { |_, _, sent| header(sent)["nonce"] })
  end

  def test_the_key_is_sent_until_there_is_an_account
    script = Script.new(directory, response(200, nonce: "a"), response(200, nonce: "b"), response(200))
    client = client(script)
    client.post("https://ca.example/account", {})
    client.account = "https://ca.example/account/1"
    client.post("https://ca.example/order", {})
    first, second = script.asked.last(2).map { |_, _, sent| header(sent) }

    assert_equal [%w[alg jwk nonce url], %w[alg kid nonce url]], [first.keys.sort, second.keys.sort]
    assert_equal ["https://ca.example/account", "https://ca.example/account/1"], [first["url"], second["kid"]]
  end

  def test_a_nonce_that_is_not_good_any_more_is_replaced
    bad = Array.new(3) { |index| refusal("badNonce", nonce: "new #{index}", status: 400) }
    script = Script.new(directory, response(200, nonce: "old"), *bad, response(200, body: { "status" => "valid" }))

    assert_equal "valid", client(script).post("https://ca.example/order").body["status"]
    assert_equal(["old", "new 0", "new 1", "new 2"], script.asked.last(4).map { |_, _, sent| header(sent)["nonce"] })
  end

  def test_it_does_not_try_nonces_for_ever
    bad = Array.new(Client::NONCES) { |index| refusal("badNonce", nonce: index.to_s, status: 400) }
    script = Script.new(directory, response(200, nonce: "old"), *bad)

    assert_equal "badNonce", problem(script).type
  end

  def test_a_limit_comes_with_the_time_to_wait
    limited = problem(Script.new(directory, response(200, nonce: "a"), refusal("rateLimited", status: 429, "retry-after" => "3600")))

    assert_equal ["rateLimited", 3600, "too much; a.example: no (rateLimited)"], [limited.type, limited.retry_after, limited.message]
  end

  def test_the_time_to_wait_may_be_a_date
    date = (Time.now + 100).httpdate
    limited = problem(Script.new(directory, response(200, nonce: "a"), refusal("rateLimited", status: 429, "retry-after" => date)))

    assert_includes 95..101, limited.retry_after
    assert_nil response(200, "retry-after" => "soon").retry_after
    assert_nil response(200, "retry-after" => (Time.now - 100).httpdate).retry_after
  end

  def test_a_page_of_a_proxy_is_no_answer
    broken = Response.new(502, {}, "<html>")

    assert_equal "the authority has answered with status 502", problem(Script.new(directory, response(200, nonce: "a"), broken)).message
    assert_equal "the authority has answered with status 502", problem(Script.new(broken)).message
    assert_equal "#{DIRECTORY} is no directory of an authority", problem(Script.new(Response.new(200, {}, "<html>"))).message
  end

  def test_what_is_decided_is_waited_for
    pending = response(200, nonce: "b", body: { "status" => "pending" })
    script = Script.new(directory, response(200, nonce: "a"), pending, response(200, body: { "status" => "valid" }))

    assert_equal "valid", client(script).wait_for("https://ca.example/authorization")["status"]
  end

  private

  def client(script) = Client.new(DIRECTORY, Fairlead::Acme::AccountKey.load(nil), script)

  def problem(script) = assert_raises(Fairlead::Acme::Problem) { client(script).post("https://ca.example/order") }

  def header(sent) = JSON.parse(Fairlead::Acme::AccountKey.decode(sent["protected"]))

  def directory = response(200, body: { "newNonce" => "https://ca.example/nonce" })

  def response(status, nonce: nil, body: {}, **headers)
    Response.new(status, { "replay-nonce" => nonce, **headers.transform_keys(&:to_s) }.compact, body)
  end

  def refusal(type, status:, **details)
    parts = [{ "identifier" => { "value" => "a.example" }, "detail" => "no" }]
    response(status, body: { "type" => "urn:ietf:params:acme:error:#{type}", "detail" => "too\nmuch", "subproblems" => parts }, **details)
  end
end
