# frozen_string_literal: true

require "test_helper"
require "json"
require "support/http_client"

# The access log: one line for each response, in the requested format, and no line forged by a client.
class AccessLogTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = <<~RUBY
    run lambda { |env|
      raise "no" if env["PATH_INFO"] == "/raise"
      warn("running") || sleep(0.2) if env["PATH_INFO"] == "/slow"
      next [200, {}, ["x" * (16 << 20)]] if env["QUERY_STRING"] == "large"
      next [200, {}, [Fairlead.stats[:engines].first[:lost_log_lines].to_s]] if env["PATH_INFO"] == "/lost"
      [env["PATH_INFO"] == "/missing" ? 404 : 200, {}, ["hello"]]
    }
  RUBY

  TIME = %r{\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000}

  def test_the_common_format
    server = serve_with_log("common")
    get(server, "/a?b=c", "user-agent" => "test")

    assert_match(%r{\A127\.0\.0\.1 - - \[#{TIME}\] "GET /a\?b=c HTTP/1\.1" 200 5 \d+\.\d{4}\n\z}, lines(server, 1).join)
  end

  def test_the_combined_format_escapes_what_the_client_sent
    server = serve_with_log("combined")
    get(server, "/", "referer" => "http://a/\"x\\", "user-agent" => "b\te\xff".b)
    get(server, "/missing")
    first, second = lines(server, 2)

    assert_match(%r{"GET / HTTP/1\.1" 200 5 "http://a/\\x22x\\x5c" "b\\x09e\\xff" \d}, first)
    assert_match(%r{"GET /missing HTTP/1\.1" 404 5 "-" "-" \d}, second)
  end

  def test_the_json_format_is_an_object_in_each_line
    server = serve_with_log("json", "--trusted-proxies", "127.0.0.1")
    get(server, "/slow?q=%22", "user-agent" => "a\"b\\c\te", "x-forwarded-for" => "192.0.2.1")
    entry = JSON.parse(lines(server, 1).first)

    assert_equal(["192.0.2.1", "127.0.0.1", "GET", "/slow?q=%22", "HTTP/1.1", 200, 5, "a\"b\\c\te", ""],
                 entry.values_at("remote", "peer", "method", "target", "protocol", "status", "bytes", "user_agent", "referer"))
    assert_includes 0.2..3, entry["seconds"]
    assert_in_delta Time.now.to_i, entry["time"], 60
  end

  def test_a_json_line_says_what_the_request_has_waited_for
    server = serve_with_log("json")
    get(server, "/slow")
    entry = JSON.parse(lines(server, 1).first)

    assert_equal RUBY_VERSION >= "3.2" ? Float : NilClass, entry["lock_wait"].class
    assert_equal 0.0, entry["waiting_room_time"]
    assert_operator entry["queue_time"], :<, entry["seconds"]
  end

  # Part of a format => text in the line for GET /missing?a=b with a field "x-a".
  DIRECTIVES = {
    "%h %a %l %u" => /127\.0\.0\.1 127\.0\.0\.1 - -/, "%t" => /\[#{TIME}\]/, "%r" => %r{GET /missing\?a=b HTTP/1\.1},
    "%m %U %q %H" => %r{GET /missing \?a=b HTTP/1\.1}, "%s %>s %b %B" => /404 404 5 5/, "%T" => /0/, "%{s}T" => /0/,
    "%{ms}T" => /\d{1,3}/, "%{us}T" => /\d{1,6}/, "%D" => /\d{1,6}/, "%{seconds}T" => /0\.\d{4}/, "%P" => /\d+/,
    "%{X-A}i %{x-b}i" => /\\x22é?\\x5c -/, "100%%" => /100%/, "é" => /é/,
    "%{queue_time}W" => /0\.\d{6}/, "%{waiting_room_time}W" => /0\.000000/,
    "%{lock_wait}W" => RUBY_VERSION >= "3.2" ? /\d\.\d{6}/ : /-/, "%{trace_id}x" => /4bf92f3577b34da6a3ce929d0e0e4736/
  }.freeze

  # Of this trace.
  TRACED = { "traceparent" => "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }.freeze

  def test_a_format_of_ones_own_has_any_directive_at_any_place
    server = serve_with_log(DIRECTIVES.keys.join("|"))
    get(server, "/missing?a=b", { "x-a" => "\"\\", **TRACED })
    parts = lines(server, 1).first.chomp.split("|")

    assert_equal DIRECTIVES.size, parts.size
    DIRECTIVES.values.zip(parts, DIRECTIVES.keys) { |pattern, part, directive| assert_match(/\A#{pattern}\z/, part, directive) }
  end

  def test_a_format_of_ones_own_says_dashes_of_what_was_refused_and_of_what_is_empty
    server = serve_with_log("%r|%m|%U|%q|%H|%s|%{host}i|%T|%{queue_time}W|%{lock_wait}W|%{trace_id}x|%b")
    ask(server, "HEAD", "/")
    TCPSocket.open("127.0.0.1", server.port) do |socket|
      socket.write("GET /forged?a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
      socket.read
    end
    head, refused = lines(server, 2)

    assert_match(/\|-\|-\n\z/, head)
    assert_equal "- - -|-|-||-|400|-|0|0.000000|-|-|12\n", refused
  end

  def test_paths_can_be_left_out_unless_they_fail
    server = serve_with_log("common", "--access-log-skip", "/up,/assets/*,/missing")
    %w[/up /up?x /assets/ /assets/a.js /missing /upper /asset].each { |target| get(server, target) }

    assert_equal(%w[/missing /upper /asset], lines(server, 3).map { |line| line[/"GET (\S+)/, 1] })
  end

  def test_a_share_of_the_requests_is_logged_by_status
    server = serve_with_log("common", "--access-log-sample", "2xx=0.25,404=0")
    client = connect(server)
    400.times { client.get("/") }
    20.times { client.get("/missing") }
    get(server, "/raise")
    log = wait_until("the last line") { lines(server, 1).then { |all| all if all.last.include?("/raise") } }
    successes, others = log.grep(/"GET/).partition { |line| line.include?('" 200 ') }

    assert_includes 60..140, successes.size
    assert_equal([["/raise", "500"]], others.map { |line| line.match(/"GET (\S+) HTTP\S+ (\d+)/).captures })
  end

  # The thread is free long before the client has the response; the line waits for the client.
  def test_a_slow_request_is_logged_when_its_response_is_sent_with_the_time_of_that
    server = serve_with_log("common", "-t", "1:1", "--slow-request", "0.15")
    client = narrow_client(server)
    client.request("GET", "/slow?large")
    server.wait_for_output(/running/)
    get(server, "/") # after the slow request: there is one thread
    get(server, "/slow")
    assert_logged(%r{slow request: GET /slow 200 .*\n}, server)
    before = server.stderr.scan(%r{slow request: GET /slow}).size
    client.answer

    assert_equal 1, before
    line = wait_until("the second line") { server.stderr.scan(%r{slow request: GET /slow .*\n})[1] }
    times = line.scan(/(\w+) (\d+\.\d{3})/).to_h.transform_values(&:to_f)

    assert_operator times.fetch("sending"), :>=, 0.2, "while the other request slept"
    assert_operator times.fetch("application") + times.fetch("sending"), :<=, times.fetch("took") + 0.002
  end

  def test_a_slow_request_is_logged_with_its_waits
    server = serve_with_log("common", "--slow-request", "0.15")
    get(server, "/")
    get(server, "/slow?secret=1")
    times = /\(queue \d\.\d{3}, waiting room 0\.000#{", lock \\d\\.\\d{3}" if RUBY_VERSION >= "3.2"}, application \d\.\d{3}, sending \d\.\d{3}\)/
    assert_logged(/slow request: .*\n/, server)

    assert_equal 1, server.stderr.scan("slow request").size
    assert_match(%r{slow request: GET /slow 200 took 0\.\d{3} s #{times}$}, server.stderr)
  end

  def test_there_is_a_line_for_each_answer_of_each_kind
    server = serve_with_log("common", "-t", 5)
    client = connect(server)
    50.times { client.get("/kept") }
    ask(server, "HEAD", "/head")
    ask(server, "POST", "/post", {}, "body")
    get(server, "/raise")
    log = lines(server, 53)

    assert_equal({ "kept" => 50, "head" => 1, "post" => 1, "raise" => 1 }, log.map { |line| line[%r{"\w+ /(\w+)}, 1] }.tally)
    assert_includes log.grep(%r{/raise}).first, '" 500 '
  end

  def test_what_the_server_refuses_is_logged_without_what_the_client_sent
    server = serve_with_log("common")
    TCPSocket.open("127.0.0.1", server.port) do |socket|
      socket.write("GET /forged HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
      socket.read
    end

    assert_match(/\A127\.0\.0\.1 - - \[#{TIME}\] "- - -" 400 12 0\.0000\n\z/, lines(server, 1).join)
  end

  def test_after_hup_lines_go_to_a_new_file_and_none_is_lost
    ["single", "-w 2"].each do |processes|
      server = serve_with_log("common", *(processes.split if processes.start_with?("-")))
      get(server, "/before")
      lines(server, 1)
      File.rename(server.path("access.log"), server.path("access.log.1"))
      server.signal(:HUP)
      server.wait_for_output(/reopened the access log/)
      wait_until("lines in the new file of #{processes}") { get(server, "/after") && !lines(server, 0).empty? }

      assert_match(%r{GET /after}, lines(server, 1).last)
      assert_match(%r{GET /before}, File.readlines(server.path("access.log.1")).first)
    end
  end

  def test_the_last_answers_before_the_end_are_logged
    [[], ["-w", 2]].each do |processes|
      server = serve_with_log("common", "-t", 5, *processes)
      client = connect(server)
      client.get("/before")
      client.request("GET", "/slow")
      server.wait_for_output(/running/)
      server.stop

      assert_equal "hello", client.answer.body
      assert_equal(%w[before slow], lines(server, 2).map { |line| line[%r{GET /(\w+)}, 1] })
    end
  end

  def test_a_reader_of_the_log_that_stops_reading_does_not_stop_the_server
    reader = nil
    server = launch(APP, "-t", 2, "--access-log", "access.pipe") do |one|
      File.mkfifo(one.path("access.pipe"))
      reader = File.open(one.path("access.pipe"), File::RDWR)
      one.start
    end
    client = connect(server)
    answered = Array.new(1000) { client.get("/#{"x" * 2000}").status }

    assert_equal [200], answered.uniq
    assert_operator client.get("/lost").body.to_i, :>, 0, "2 MB of lines, of which 1 MiB may wait"
    assert_equal 0, server.stop(seconds: 5).exitstatus
  ensure
    reader&.close
  end

  def test_what_a_full_disk_does_not_take_is_counted_and_told_of_when_there_is_room_again
    [[], ["-w", 1]].each do |processes|
      server = launch(APP, "--access-log", "access.log", *processes) do |one|
        File.symlink("/dev/full", one.path("access.log"))
        one.start
      end
      client = connect(server)
      wait_until("lost lines") { client.get("/lost").body.to_i.positive? }
      File.unlink(server.path("access.log"))
      server.signal(:HUP)
      server.wait_for_output(/reopened the access log/)
      wait_until("a line") { client.get("/after") && lines(server, 0).any? }

      assert_logged(/\d+ lines of the access log \(\d+ bytes\) could not be written in time and are lost$/, server)
      assert_match(%r{\A127\.0\.0\.1 .*GET /}, lines(server, 1).first)
    end
  end

  private

  def serve_with_log(format, *arguments)
    serve(APP, "--access-log", "access.log", "--access-log-format", format, *arguments)
  end

  # Returns the lines of the log, once there are so many.
  def lines(server, count)
    wait_until("#{count} lines") do
      found = File.exist?(server.path("access.log")) ? File.readlines(server.path("access.log")) : []
      found if found.size >= count
    end
  end
end
