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

  def test_what_middleware_has_added_is_forgotten
    keys = %w[REQUEST_METHOD REQUEST_URI REQUEST_PATH PATH_INFO QUERY_STRING SCRIPT_NAME GATEWAY_INTERFACE SERVER_NAME HTTPS HTTP_HOST HTTP_VERSION
              SSL_CLIENT_CERT REMOTE_ADDR rack.url_scheme]
    env = (keys + %w[REMOTE_USER AUTH_TYPE REQUEST_ID ROUTES_7_SCRIPT_NAME ORIGINAL_FULLPATH]).to_h { |key| [key, "x"] }

    assert_equal keys, Request.forget_middleware(env).keys
  end

  def test_entries_are_binary_and_their_keys_are_those_of_other_requests
    env = Request.add({ "rack.errors" => $stderr }, [["HTTP_HOST".b, "grün".b]])

    assert_equal({ "HTTP_HOST" => "grün".b, "rack.errors" => $stderr }, env)
    assert_same(-"HTTP_HOST", env.keys.last)
    refute_predicate env["HTTP_HOST"], :frozen?
  end
end
