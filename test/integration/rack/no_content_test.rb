# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Responses that never have a body: 204 and 304 (RFC 9112 §6.3), even if the application returns one.
class NoContentTest < Minitest::Test
  include Fairlead::Test::HttpServing

  BODIES = ["[]", "['never']", "Enumerator.new { |out| Notes.add('each'); out << 'never' }",
            "->(stream) { Notes.add('call'); stream.write('never') }", "File.open('never.txt')"].freeze

  [204, 304].each do |status|
    define_method("test_#{status}_has_no_body_and_no_framing") do
      BODIES.each do |body|
        ["{}", "{ 'transfer-encoding' => 'chunked' }", "{ 'content-length' => '5' }"].each do |headers|
          server = serve(unlinted("[#{status}, #{headers}, #{body}]"), files: { "never.txt" => "never" })
          client = connect(server).request.request
          2.times do
            answer = client.answer
            assert_equal [status, nil, nil], [answer.status, answer["transfer-encoding"], answer["content-length"]], "#{headers} #{body}"
          end
          refute client.readable?, "bytes follow"
          assert_empty notes(server), body
        end
      end
    end
  end

  def test_under_rack_lint
    server = serve(linted("[env['PATH_INFO'].delete('/').to_i, { 'x' => 'y' }, []]"))
    client = connect(server)

    [204, 304, 204].each { |status| assert_equal [status, "y"], client.get("/#{status}").then { |answer| [answer.status, answer["x"]] } }
  end

  def test_205_has_an_empty_body_with_a_length
    answer = connect(serve(unlinted("[205, {}, []]"))).get

    assert_equal [205, "0"], [answer.status, answer["content-length"]]
  end
end
