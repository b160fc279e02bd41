# frozen_string_literal: true

require "test_helper"
require "support/http2_commands"
require "support/http_client"

# fairlead.trace_id, from traceparent (W3C Trace Context).
class TraceIdTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Http2Commands

  APP = "run ->(env) { [200, {}, [env.fetch('fairlead.trace_id', 'none').to_s]] }"
  ID = "4bf92f3577b34da6a3ce929d0e0e4736"
  VALID = "00-#{ID}-00f067aa0ba902b7-01".freeze

  def test_a_request_of_a_trace_has_its_id
    server = serve(APP)
    client = connect(server)

    4.times do |number|
      id = ID.sub("4", number.to_s)
      assert_equal id, client.request("GET", "/", { "traceparent" => VALID.sub(ID, id) }).answer.body
    end
    assert_equal ID, curl(server, "/", "-H", "traceparent: #{VALID}").body
  end

  def test_without_a_valid_one_there_is_none
    client = connect(serve(APP))

    3.times do
      [nil, "", "00-#{"0" * 32}-00f067aa0ba902b7-01", VALID.upcase, "#{VALID}-1", "#{VALID}, #{VALID}"].each do |value|
        assert_equal "none", client.request("GET", "/", { "traceparent" => value }.compact).answer.body, value
      end
      client.write("GET / HTTP/1.1\r\nhost: x\r\ntraceparent: #{VALID}\r\ntraceparent: #{VALID}\r\n\r\n")
      assert_equal "none", client.answer.body
    end
  end
end
