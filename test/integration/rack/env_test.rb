# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# The env of an application (Rack SPEC, "The Environment"), checked by Rack::Lint.
class EnvTest < Minitest::Test
  include Fairlead::Test::HttpServing

  # Responds with the env: Strings, true and false as they are, everything else by its class.
  TELL = <<~RUBY
    plain = env.transform_values { |value| [String, TrueClass, FalseClass].include?(value.class) ? value : value.class.name[/\\w+\\z/] }
    body = JSON.generate(plain.transform_values { |value| value.is_a?(String) ? value.dup.force_encoding("UTF-8").scrub : value })
    [200, { "content-type" => "application/json" }, [body]]
  RUBY

  def test_the_whole_env_of_a_request
    server = serve(linted(TELL))
    env = env_of(connect(server).request("GET", "/a/b?c=d", { "host" => "example.com:1234", "accept" => "*/*", "x-request-id" => "7" }))

    expected = {
      "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/a/b", "QUERY_STRING" => "c=d",
      "REQUEST_PATH" => "/a/b", "REQUEST_URI" => "/a/b?c=d",
      "SERVER_NAME" => "example.com", "SERVER_PORT" => "1234", "SERVER_PROTOCOL" => "HTTP/1.1",
      "SERVER_SOFTWARE" => "fairlead #{Fairlead::VERSION}", "GATEWAY_INTERFACE" => "CGI/1.2", "REMOTE_ADDR" => "127.0.0.1",
      "HTTP_VERSION" => "HTTP/1.1", "HTTP_HOST" => "example.com:1234", "HTTP_ACCEPT" => "*/*", "HTTP_X_REQUEST_ID" => "7",
      "rack.url_scheme" => "http", "rack.version" => "Array", "rack.errors" => "ErrorWrapper",
      "rack.input" => "InputWrapper", "rack.multithread" => true, "rack.multiprocess" => false, "rack.run_once" => false,
      "rack.hijack?" => true, "rack.hijack" => "Proc", "rack.upgrade?" => "NilClass",
      "rack.after_reply" => "Array", "rack.response_finished" => "Array", "HTTP_X_REQUEST_START" => env["HTTP_X_REQUEST_START"],
      "fairlead.queue_time" => "Method", "fairlead.waiting_room_time" => "Method", "fairlead.lock_wait" => "Method",
      "fairlead.client_gone?" => "Method", "fairlead.request_timeout" => "Method"
    }
    assert_equal expected.sort, env.reject { |name, _| name == "rack.lint" }.sort
  end

  # The SPEC of Rack before 3.1 requires it, and Rails depends on it, with any Rack; a field of that name must not set it.
  def test_http_version_is_that_of_the_request
    server = serve(unlinted(TELL))

    %w[version Version VERSION].each do |name|
      assert_equal "HTTP/1.1", env_of(connect(server).request("GET", "/", { name => "x" }))["HTTP_VERSION"]
      assert_equal "HTTP/1.0", env_of(connect(server).write("GET / HTTP/1.0\r\n#{name}: x\r\n#{name}: y\r\n\r\n"))["HTTP_VERSION"]
    end
  end

  # Host in the fields => SERVER_NAME and SERVER_PORT, with http and with https.
  PORTS = { "example.com" => [%w[example.com 80], %w[example.com 443]], "example.com:80" => [%w[example.com 80], %w[example.com 80]],
            "example.com:443" => [%w[example.com 443], %w[example.com 443]], "[::1]:3000" => [%w([::1] 3000), %w([::1] 3000)] }.freeze

  def test_scheme_and_port_follow_a_trusted_proxy
    server = serve(linted(TELL), "--trusted-proxies", "127.0.0.0/8", "--trusted-proxies", "unix")
    client = connect(server)

    2.times do
      PORTS.each do |host, expected|
        %w[http https].zip(expected).each do |scheme, server_fields|
          env = env_of(client.request("GET", "/", { "host" => host, "x-forwarded-proto" => scheme }))
          assert_equal [scheme, *server_fields], env.values_at("rack.url_scheme", "SERVER_NAME", "SERVER_PORT"), host
        end
      end
    end
  end

  def test_scheme_and_port_do_not_follow_others
    env = env_of(connect(serve(linted(TELL))).request("GET", "/", { "host" => "a", "x-forwarded-proto" => "https" }))

    assert_equal %w[http 80], env.values_at("rack.url_scheme", "SERVER_PORT")
  end

  def test_the_scheme_can_be_forced
    env = env_of(connect(serve(linted(TELL), "--rack-url-scheme", "https")).request("GET", "/", { "host" => "a" }))

    assert_equal %w[https 443], env.values_at("rack.url_scheme", "SERVER_PORT")
  end

  def test_what_puma_adds_is_there_when_asked_for
    code = <<~'RUBY'
      socket, wait = env.values_at("puma.socket", "puma.request_body_wait")
      env["puma.mark_as_io_bound"]&.call
      env["rack.after_reply"] << -> { Notes.add("#{socket.class} #{wait.class}") }
      env["rack.response_finished"] << ->(*) { Notes.add(wait) }
      [200, {}, ["#{socket&.remote_address&.ip_port} #{wait} #{env.keys.grep(/puma/).size}"]]
    RUBY
    with = connect(server = serve(unlinted(code), "--puma-env"))
    3.times { assert_equal "#{with.socket.local_address.ip_port} 0.0 3", with.get.body }
    assert_equal "  0", get(serve(unlinted(code)), "/").body
    assert_equal ["TCPSocket Float"], wait_for_notes(server, 6).grep(/T/).uniq
  end

  def test_the_wait_for_a_body_is_measured
    server = serve(unlinted("[200, {}, [env['puma.request_body_wait'].to_s]]"), "--puma-env", "-w", 1)
    client = connect(server).write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\na")
    sleep 0.3 # the measured time
    milliseconds = Float(client.write("b").answer.body)

    assert_includes 250.0..5_000.0, milliseconds
  end

  def test_the_socket_is_closed_after_the_request
    server = serve(unlinted("before = $socket; $socket = env['puma.socket']; [200, {}, [before&.closed?.inspect]]"), "--puma-env")
    client = connect(server)

    assert_equal %w[nil true true], Array.new(3) { client.get.body }
  end

  def test_threads_and_processes_are_told
    alone = env_of(connect(serve(linted(TELL), "-t", "1")).request)
    many = env_of(connect(serve(linted(TELL), "-w", "2")).request)

    assert_equal [false, false], alone.values_at("rack.multithread", "rack.multiprocess")
    assert_equal [true, true], many.values_at("rack.multithread", "rack.multiprocess")
  end

  def test_values_that_applications_change_in_place_may_be_changed
    server = serve(linted(<<~RUBY))
      %w[PATH_INFO QUERY_STRING REQUEST_URI HTTP_X CONTENT_TYPE].each { |key| env[key] << "x" }
      env["rack.after_reply"] << -> {}
      env["SCRIPT_NAME"] = "/x"
      env.delete("rack.version")
      [200, { "content-type" => "text/plain" }, [env["PATH_INFO"]]]
    RUBY

    assert_equal "/ax", get(server, "/a?b", "x" => "y", "content-type" => "z").body
  end

  def test_nothing_that_an_application_does_to_its_env_is_seen_by_another_request
    server = serve(linted(<<~RUBY))
      texts = env.select { |key, value| key != "HTTP_X_REQUEST_START" && (value.is_a?(String) || value.is_a?(Array)) }
      seen = texts.inspect + env.keys.grep(/my/).inspect
      env.each_value { |value| value << "spoilt" if value.is_a?(String) && !value.frozen? }
      env["rack.after_reply"] << -> {}
      env["rack.response_finished"] << ->(*) {}
      env["my.key"] = env["MY_KEY"] = "spoilt"
      env.delete("SERVER_PROTOCOL")
      [200, { "content-type" => "text/plain" }, [seen]]
    RUBY
    client = connect(server)
    first = client.get("/", "x" => "y").body

    5.times { assert_equal first, client.get("/", "x" => "y").body }
    refute_includes first, "spoilt"
  end

  def test_server_name_and_port_come_from_host
    client = connect(serve(linted(TELL)))
    { "a" => %w[a 80], "A.b:81" => %w[A.b 81], "a:" => %w[a 80], "[::1]" => %w[[::1] 80], "[::1]:82" => %w[[::1] 82],
      "127.0.0.1:83" => %w[127.0.0.1 83] }.each do |host, expected|
      env = env_of(client.request("GET", "/", { "host" => host }))
      assert_equal [*expected, host], env.values_at("SERVER_NAME", "SERVER_PORT", "HTTP_HOST"), host
    end
  end

  def test_without_host_they_are_those_of_the_listener
    server = serve(linted(TELL))
    env = env_of(connect(server).write("GET / HTTP/1.0\r\n\r\n"))

    assert_equal ["127.0.0.1", server.port.to_s, nil, "HTTP/1.0"],
                 env.values_at("SERVER_NAME", "SERVER_PORT", "HTTP_HOST", "SERVER_PROTOCOL")
  end

  def test_type_and_length_of_a_body_have_no_prefix
    client = connect(serve(linted(TELL)))
    env = env_of(client.request("POST", "/", { "Content-Type" => "text/x" }, body: "abc"))

    assert_equal %w[text/x 3], env.values_at("CONTENT_TYPE", "CONTENT_LENGTH")
    assert_empty env.keys.grep(/HTTP_CONTENT/)
    assert_equal [nil, nil], env_of(client.request).values_at("CONTENT_TYPE", "CONTENT_LENGTH")
  end

  def test_the_strings_of_a_request_are_binary
    server = serve(linted(<<~RUBY))
      strings = env.select { |key, value| key.match?(/\\A(HTTP_X|PATH_INFO|QUERY_STRING|REQUEST_URI)/) }.values
      [200, { "content-type" => "text/plain" }, [strings.map { |string| [string.encoding == Encoding::BINARY, string.bytes.max > 127] }.uniq.inspect]]
    RUBY

    assert_equal "[[true, false], [true, true]]", get(server, "/a?b", "x" => "\xE4\xC3\xA4").body
  end

  def test_what_the_application_writes_to_errors_is_in_the_log
    server = serve(linted('env["rack.errors"].puts("one"); env["rack.errors"].write("two\n"); env["rack.errors"].flush; [204, {}, []]'))

    assert_equal 204, get(server).status
    assert_equal "one\ntwo\n", server.stderr
  end

  private

  def env_of(client) = JSON.parse(client.answer.body)
end
