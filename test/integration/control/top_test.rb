# frozen_string_literal: true

require "test_helper"
require "io/console"
require "open3"
require "pty"
require "support/control"

# `fairlead top`, and the port that `fairlead ctl dashboard` opens.
class TopTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  APP = "GO = File.expand_path('go')\nrun ->(env) { sleep 0.01 until File.exist?(GO); [200, {}, []] }"
  COMMAND = [RbConfig.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/fairlead")].freeze

  # A server with a request that hangs in each worker.
  def hung(*arguments, threads: 2)
    server = serve(APP, "-t", "1:1", *arguments, *FLAGS)
    threads.times { |i| connect(server).write("GET /hang/#{i}?secret=1 HTTP/1.1\r\nhost: a\r\n\r\n") }
    wait_until("hanging threads") { snapshot(server)["processes"].sum { |process| process["busy_threads"] } == threads }
    server
  end

  def snapshot(server) = json(server, "snapshot")

  def top(server, *arguments) = Open3.capture3(*COMMAND, "top", "-S", server.path(STATE), *arguments)

  def test_once_prints_what_a_server_does_whose_threads_all_hang
    server = hung("-w", 2)
    output, errors, status = top(server, "--once")

    assert_equal ["", 0], [errors, status.exitstatus]
    assert_match(/\Afairlead \S+  ready  pid #{server.pid}  up \d+ s  #{server.addresses.first}\n/, output)
    assert_match(/^2 of 2 threads busy   0 waiting \(0 in the waiting room\)   2 connections/, output)
    assert_equal 2, output.scan(%r{^ *\d+(?:\.\d)? [mu]?s  GET /hang/[01] +[01] +\d+$}).size, output
    assert_match(/^0 +all busy  1 of 1 .*^1 +all busy  1 of 1 /m, output)
    refute_includes output, "secret"
  end

  def test_without_a_terminal_it_prints_once
    assert_match(/\Afairlead .*^- +serving  0 of 1 /m, top(hung(threads: 0)).first)
  end

  def test_a_server_that_is_not_there_is_named
    _, errors, status = Open3.capture3(*COMMAND, "top", "-C", "tcp://127.0.0.1:1", "--once")

    assert_equal ["fairlead ctl: the server is not running (nobody answers at tcp://127.0.0.1:1)\n", 1], [errors, status.exitstatus]
  end

  def test_text_that_a_terminal_would_obey_is_replaced
    snapshot = { "running" => [{ "seconds" => 1.0, "request" => "GET /\e[31m\u009b31m", "worker" => 0, "thread" => 1 }] }

    assert_equal "1.0 s  GET /?[31m?31m       0       1", Fairlead::Control::Tool::Top::Table.running(snapshot, 1).last
  end

  # Runs it in a terminal of this size. Yields the input, the output so far, and its process; returns its status.
  def in_terminal(server, rows: 24, columns: 80)
    output = +""
    PTY.spawn(*COMMAND, "top", "-S", server.path(STATE)) do |reader, writer, pid|
      writer.winsize = [rows, columns]
      reading = Thread.new { loop { output << reader.readpartial(4096) } rescue Errno::EIO } # rubocop:disable Style/RescueModifier
      yield writer, output, pid
      status = Process.wait2(pid).last
      reading.join
      return [status, output]
    end
  end

  def test_in_a_terminal_it_goes_on_fits_and_restores_the_screen
    status, output = in_terminal(hung(threads: 1)) do |writer, output, _|
      wait_until("two pictures") { output.scan("\e[H").size > 1 }
      writer.winsize = [8, 30]
      wait_until("a smaller picture") { output.split("\e[H").last.then { |last| last.include?("\e[J") && last.scan("\n").size < 8 } }
      writer.write("q")
    end

    assert_equal 0, status.exitstatus
    assert output.start_with?("\e[?1049h\e[?25l"), output
    assert output.end_with?("\e[?25h\e[?1049l"), output
    assert_operator output.split("\e[H").last[/.*\e\[J/m].gsub(/\e\[./, "").lines.map { |line| line.strip.length }.max, :<=, 30
  end

  { "INT" => 0, "TERM" => 143 }.each do |signal, exit_status|
    define_method(:"test_#{signal}_restores_the_screen") do
      status, output = in_terminal(hung(threads: 0)) do |_, output, pid|
        wait_until("a picture") { output.include?("\e[H") }
        Process.kill(signal, pid)
      end

      assert_equal exit_status, status.exitstatus
      assert output.end_with?("\e[?25h\e[?1049l"), output
    end
  end

  # --- fairlead ctl dashboard

  # Yields the port and the secret.
  def with_dashboard(server)
    IO.popen([*COMMAND, "ctl", "-S", server.path(STATE), "dashboard"]) do |io|
      assert io.wait_readable(20)
      yield io.gets.match(%r{\Ahttp://127\.0\.0\.1:(\d+)/#(\h{32})$}).captures
    ensure
      Process.kill(:INT, io.pid)
    end
    assert_equal 0, $?.exitstatus
  end

  def ask(port, target, method: "GET", host: "127.0.0.1:#{port}", **fields)
    client = adopt(TCPSocket.new("127.0.0.1", Integer(port, 10)))
    fields = { host: host, **fields }.map { |name, value| "#{name.to_s.tr("_", "-")}: #{value}\r\n" }
    client.write("#{method} #{target} HTTP/1.1\r\n#{fields.join}\r\n").answer
  end

  def test_the_port_serves_the_page_to_every_user_and_data_only_with_the_secret
    with_dashboard(hung(threads: 1)) do |port, secret|
      page = ask(port, "/").body
      files = page.scan(/(?:src|href)="(\w+\.\w+)"/).flatten

      assert_equal({ 200 => files }, files.group_by { |file| ask(port, "/#{file}").status })
      assert_match(/\A\[{"worker":/, ask(port, "/backtraces", authorization: "Bearer #{secret}").body)
      [{}, { authorization: "Bearer #{TOKEN}" }, { authorization: "Bearer #{secret}", origin: "http://evil.example" },
       { authorization: "Bearer #{secret}", sec_fetch_site: "cross-site" }, { authorization: "Bearer #{secret}", host: "evil.example:#{port}" },
       { authorization: "Bearer #{secret}", host: "127.0.0.1.evil.example" }].each do |fields|
        assert_equal 403, ask(port, "/backtraces", **fields).status, fields.inspect
      end
    end
  end

  def test_the_port_changes_nothing
    server = hung(threads: 0)
    with_dashboard(server) do |port, secret|
      %w[/stop /snapshot /dashboard/../stop //stop /gc].each do |path|
        assert_equal 404, ask(port, path, authorization: "Bearer #{secret}").status, path
      end
      assert_equal 405, ask(port, "/", method: "POST").status
      assert_predicate server, :running?
    end
  end

  def test_it_works_with_a_unix_socket
    server = serve(APP, "--control-url", "auto", "--state", STATE)
    with_dashboard(server) { |port, _| assert_includes ask(port, "/").body, "<title>Fairlead</title>" }
  end
end
