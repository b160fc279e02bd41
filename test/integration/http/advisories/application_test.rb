# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Published advisories of other servers about the interface to the application: split responses, fields that imitate others,
# unclosed bodies, and bytes that end up in a log.
class ApplicationAdvisoriesTest < Minitest::Test
  include Fairlead::Test::HttpServing

  SPLIT = "a\r\nset-cookie: evil=1\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"

  def test_cve_2020_5247_line_ends_in_a_value_do_not_split_the_answer
    server = serve(unlinted("[200, { 'x' => #{SPLIT.inspect}, 'y' => %w[\"a\\rset-cookie:\\ b\"] }, ['ok']]"))

    assert_unsplit get(server)
    wait_for_error server
  end

  def test_cve_2020_5249_line_ends_in_early_hints_do_not_split_the_answer
    server = serve(unlinted(<<~RUBY), "--early-hints")
      env["rack.early_hints"].call("link" => "</a>\\rset-cookie: evil=1", "x" => #{SPLIT.inspect})
      [200, {}, ["ok"]]
    RUBY
    client = connect(server)

    answers = [client.request.answer, client.answer]

    assert_equal [103, 200], answers.map(&:status)
    answers.each { |answer| assert_unsplit(answer) }
  end

  def test_cve_2025_30221_line_ends_in_a_list_of_values_do_not_split_the_answer
    server = serve(unlinted("[200, { 'x' => [#{SPLIT.inspect}, 'fine', \"a\\n\\nset-cookie: b\"] }, ['ok']]"))

    assert_unsplit get(server)
    wait_for_error server
  end

  def test_rustsec_2017_0002_line_ends_in_a_name_do_not_split_the_answer
    server = serve(unlinted("[200, { \"x\\r\\nset-cookie: b\\r\\ny\" => 'z', \"x\\nset-cookie\" => 'b', '' => 'c', 'd e' => 'f' }, ['ok']]"))

    assert_unsplit get(server)
    wait_for_error server
  end

  def test_cve_2026_42545_an_invalid_field_of_the_application_costs_neither_answer_nor_server
    server = serve(unlinted('[200, { "\xFF\xFE" => "a", "x" => "\xFF\x00", "y" => "\xE4" }, ["ok"]]'))

    answer = get(server)

    assert_equal [200, "ok", "\xE4".b], [answer.status, answer.body, answer["y"]]
    assert_equal 200, get(server).status
  end

  def test_cve_2022_23634_the_body_is_closed_before_the_connection_serves_another_request
    server = serve(linted(<<~'RUBY', setup: <<~SETUP), "-t", "1")
      leaked = Thread.current[:user]
      Thread.current[:user] = env["PATH_INFO"]
      failing = env["PATH_INFO"] == "/fail"
      body = failing ? Enumerator.new { |out| out << "x" << raise("no") } : ["seen #{leaked.inspect}"]
      [200, { "content-type" => "text/plain" }, Rack::BodyProxy.new(body) { Thread.current[:user] = nil }]
    RUBY
      require "rack/body_proxy"
    SETUP
    client = connect(server)

    assert_equal "seen nil", client.get("/alice").body
    assert_equal "seen nil", client.request("HEAD", "/bob").request("GET", "/carol").then { client.answer(to: "HEAD") && client.answer.body }
    assert_raises(Fairlead::Test::HttpClient::CutOff) { get(server, "/fail") }

    assert_equal "seen nil", get(server, "/dave").body
  end

  def test_cve_2024_45614_a_name_with_an_underscore_does_not_replace_what_the_proxy_says
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, [env['HTTP_X_FORWARDED_FOR'].inspect]]"))
    honest = "x-forwarded-for: 1.1.1.1\r\n"
    forged = "x-forwarded_for: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\n"

    { "#{honest}#{forged}" => '"1.1.1.1"', "#{forged}#{honest}" => '"1.1.1.1"', forged => "nil" }.each do |fields, seen|
      assert_equal seen, connect(server).write("GET / HTTP/1.1\r\nhost: a\r\n#{fields}\r\n").answer.body, fields
    end
  end

  def test_cve_2015_7519_no_name_with_an_underscore_reaches_the_application
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, [env.keys.grep(/USER|SSL/).inspect]]"))

    assert_equal "[]", get(server, "/", "remote_user" => "root", "X_USER" => "root", "ssl_client_s_dn" => "root").body
  end

  def test_cve_2025_61780_a_client_cannot_choose_what_is_sent_as_a_file
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, [env.keys.grep(/SENDFILE|ACCEL/).inspect]]"))

    fields = { "X-Sendfile-Type" => "X-Accel-Redirect", "x-accel-mapping" => "/=/secret/", "X-Sendfile_Type" => "x" }

    assert_equal "[]", get(server, "/", fields).body
  end

  def test_cve_2009_3287_a_client_cannot_choose_its_address
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, [env['REMOTE_ADDR']]]"))

    assert_equal "127.0.0.1", get(server, "/", "x-forwarded-for" => "6.6.6.6", "forwarded" => "for=6.6.6.6", "client-ip" => "6.6.6.6",
                                               "remote-addr" => "6.6.6.6").body
  end

  def test_cve_2026_34835_a_host_has_no_bytes_that_could_mislead_an_application
    server = serve(linted("Notes.add(env['HTTP_HOST']); [200, { 'content-type' => 'text/plain' }, ['ok']]"))

    ["a/b", "a?b", "a#b", "a\\b", "a@b", "a<b>", "a\"b", "a b", "a\tb", "a,b", "a:b", "a:1:2", "[::1", "[x]", "\xC3\xA4", "%zz"].each do |host|
      assert_equal 400, get(server, "/", "host" => host).status, host
    end
    assert_empty notes(server)
  end

  def test_hyper_1_9_options_of_a_connection_may_be_no_text
    server = serve(linted("[200, { 'content-type' => 'text/plain' }, ['ok']]"))
    client = connect(server)

    assert_equal 200, client.get("/", "connection" => "\xFF\xFE, keep-alive").status
    assert_equal "close", client.get("/", "connection" => "\xFF, close").fields.to_h["connection"]
  end

  def test_cve_2009_4492_control_characters_do_not_reach_the_log
    server = serve(linted('raise "no"'), "-v", "-e", "production")

    get(server, "/%1b%5b31m", "user-agent" => "a\x80\x9b31m\"quoted\"", "referer" => "b\\")
    connect(server).write("GET /\e[31m HTTP/1.1\r\nhost: a\r\n\r\n").answer
    server.wait_for_output(/refused 400/)
    server.wait_for_output(%r{"GET /%1b})

    refute_match(/[^\t\n -~]/n, server.log.b)
  end

  private

  def assert_unsplit(answer)
    assert_empty answer.all("set-cookie")
    assert_includes ["ok", ""], answer.body
  end

  def wait_for_error(server)
    server.wait_for_output(/left out/)
  end
end
