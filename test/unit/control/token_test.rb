# frozen_string_literal: true

require "test_helper"

class TokenTest < Minitest::Test
  Token = Fairlead::Control::Token
  Request = Fairlead::Control::Request

  def request(target, *fields) = Request.new(["GET #{target} HTTP/1.1", *fields].join("\r\n"))

  def test_it_is_taken_from_the_query_as_puma_has_it
    token = Token.new("s3cret")

    assert token.allows?(request("/stop?token=s3cret"))
    assert token.allows?(request("/stop?a=b&token=s3cret"))
    ["/stop", "/stop?token=", "/stop?token=s3cre", "/stop?token=s3cret1", "/stop?xtoken=s3cret"].each do |target|
      refute token.allows?(request(target))
    end
  end

  def test_it_is_taken_from_a_bearer_field
    token = Token.new("s3cret")

    assert token.allows?(request("/stop", "Authorization: Bearer s3cret"))
    refute token.allows?(request("/stop", "Authorization: Basic s3cret"))
    refute token.allows?(request("/stop", "Authorization: Bearer other"))
  end

  def test_it_may_be_escaped_in_the_query
    assert Token.new("a b%/ä").allows?(request("/?token=a%20b%25%2F%C3%A4"))
  end

  def test_without_a_text_it_is_new_each_time
    texts = Array.new(2) { Token.new(nil).text }

    assert_equal 2, texts.uniq.size
    assert_match(/\A\h{32}\z/, texts.first)
  end

  def test_none_allows_everything_but_pages_of_other_origins
    token = Token.new("none")

    assert_nil token.text
    assert token.allows?(request("/stop"))
    assert token.allows?(request("/stop", "Sec-Fetch-Site: none"))
    %w[cross-site same-site].each { |site| refute token.allows?(request("/stop", "Sec-Fetch-Site: #{site}")) }
  end

  def test_without_a_token_a_name_that_was_made_to_lead_here_is_refused
    token = Token.new("none", url: "tcp://Shop.internal:9293")
    ["localhost:9293", "LOCALHOST", "127.0.0.1:9293", "10.0.0.1", "[::1]:9293", "shop.internal:9293", "shop.internal."].each do |host|
      assert token.allows?(request("/stop", "Host: #{host}")), host
    end
    ["evil.example:9293", "127.0.0.1.evil.example", "1.2.3.4.5", "localhost.evil.example", "[evil.example]", "shop", ""].each do |host|
      refute token.allows?(request("/stop", "Host: #{host}")), host
    end
    assert token.allows?(request("/stop"))
  end

  def test_at_a_unix_socket_the_host_means_nothing
    assert Token.new("none", url: "unix:///run/control.sock").allows?(request("/stop", "Host: anything"))
  end

  def test_a_host_needs_no_check_where_there_is_a_token
    assert Token.new("s3cret", url: "tcp://127.0.0.1:9293").allows?(request("/stop?token=s3cret", "Host: anything.example"))
  end
end
