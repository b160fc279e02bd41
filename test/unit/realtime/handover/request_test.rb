# frozen_string_literal: true

require "test_helper"
require "rack"
require "stringio"

class HandoverRequestTest < Minitest::Test
  Request = Fairlead::Handover::Request

  def test_strings_of_the_request_move_and_nothing_else
    moving = { "REQUEST_METHOD" => "GET", "HTTP_COOKIE" => "a=b", "HTTP_X.ODD" => "1", "SSL_CLIENT_S_DN" => "CN=ann", "HTTPS" => "on",
               "REMOTE_ADDR" => "::1", "rack.url_scheme" => "https", "fairlead.trace_id" => "abc" }
    staying = { "rack.input" => StringIO.new, "rack.session" => { "user" => 1 }, "warden" => Object.new, "action_dispatch.secret_key_base" => "s",
                "rack.session.id" => "secret", "SERVER_SOFTWARE" => "Fairlead/0.1", "HTTP_X_REQUEST_START" => "t=1", "HTTP_LIST" => ["x"],
                :REQUEST => "symbol" }

    assert_equal moving.to_a.sort, Request.entries(moving.merge(staying)).sort
  end

  def test_entries_are_binary_and_their_keys_are_those_of_other_requests
    env = Request.add({ "rack.errors" => $stderr }, [["HTTP_HOST".b, "grün".b]])

    assert_equal({ "HTTP_HOST" => "grün".b, "rack.errors" => $stderr }, env)
    assert_same(-"HTTP_HOST", env.keys.last)
    refute_predicate env["HTTP_HOST"], :frozen?
  end
end
