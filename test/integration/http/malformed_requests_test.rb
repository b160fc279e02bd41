# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"
require_relative "malformed_requests"

# Malformed requests are refused with an exact status, logged in one line and not passed to the application. The connection
# ends, because the bytes behind such a request cannot be trusted. Other clients are served as before.
class MalformedRequestsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  HIDDEN = "GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n"

  MalformedRequests.constants.each do |name|
    table = MalformedRequests.const_get(name)
    next unless table.is_a?(Hash)

    define_method("test_malformed_#{name.downcase}_are_refused") { check(MalformedRequests.rows(table)) }
  end

  def test_a_refusal_is_a_whole_answer_with_its_date
    server = serve(linted('[200, { "content-type" => "text/plain" }, ["never"]]'))

    answer = connect(server).write("GET / HTTP/1.1\r\n\r\n").answer

    assert_equal [400, "Bad Request", "Bad Request\n"], [answer.status, answer.reason, answer.body]
    assert_match(/\A[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\z/, answer["date"])
    assert_equal ["text/plain", "close"], [answer["content-type"], answer["connection"]]
  end

  def test_a_refusal_on_the_way_does_not_cost_the_answers_before_it
    server = serve(linted('[200, { "content-type" => "text/plain" }, [env["PATH_INFO"]]]'))
    client = connect(server)

    client.write("GET /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\n\r\nGET /3 HTTP/1.1\r\n\r\n#{HIDDEN}")

    assert_equal [[200, "/1"], [200, "/2"], [400, "Bad Request\n"]], Array.new(3) { client.answer.then { |a| [a.status, a.body] } }
    assert_predicate client, :closed?
  end

  private

  def check(rows)
    server = serve(linted("Notes.add(env['PATH_INFO']); [200, { 'content-type' => 'text/plain' }, ['ok']]"))
    bystander = connect(server)

    rows.each_with_index do |row, index|
      client = connect(server)
      answer = client.write("#{row.bytes}#{HIDDEN}").answer
      assert_equal [row.status, "close"], [answer.status, answer["connection"]], row.name
      assert_predicate client, :closed?, row.name
      wait_until("the log of #{row.name}") { server.stderr.lines.size > index }
      assert_equal row.misdeed, server.stderr.lines.fetch(index)[/\Arefused #{row.status} \((.+)\) from 127\.0\.0\.1:\d+\n\z/, 1], row.name
      assert_equal 200, bystander.get("/bystander").status, row.name
      client.close
    end
    assert_equal rows.size, server.stderr.lines.size
    assert_equal ["/bystander"], notes(server).uniq
  end
end
