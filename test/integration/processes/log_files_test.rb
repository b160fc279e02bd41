# frozen_string_literal: true

require "test_helper"
require "json"
require "support/http_client"
require "support/processes"

# The files that replace standard output and standard error, and the event log: after log rotation every process writes to
# the new files, and no line is lost.
class LogFilesTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  APP = <<~'RUBY'
    run lambda { |env|
      case env["PATH_INFO"]
      when "/raise" then raise "oops"
      when "/print" then $stdout.puts("printed") || warn("warned")
      end
      [200, {}, ["hello"]]
    }
  RUBY
  REDIRECT = %w[--redirect-stdout out.log --redirect-stderr err.log].freeze

  def test_everything_that_is_printed_goes_to_the_files
    [[], ["-w", 2]].each do |processes|
      server = redirected(*processes)
      %w[/print /raise].each { |path| get(server, path) }
      assert_equal 0, server.stop.exitstatus

      out, err = %w[out.log err.log].map { |name| File.read(server.path(name)) }
      assert_match(/\A=== fairlead .* ===\n.*listening on .*^printed$.*fairlead stopped\n\z/m, out)
      assert_match(/\A=== fairlead .* ===\n.*^warned$.*oops \(RuntimeError\)/m, err)
      assert_equal ["", ""], [server.stdout, server.stderr]
    end
  end

  def test_after_a_rotation_under_load_every_request_is_in_one_of_the_files
    [[], ["-w", 2]].each do |processes|
      server = redirected("--log-requests", "-t", 3, *processes)
      sent = under_load(server) { 3.times { |n| rotate(server, n) } }
      assert_equal 0, server.stop.exitstatus

      lines = Dir.glob(server.path("out.log*")).flat_map { |path| File.readlines(path, chomp: true) }
      assert_operator sent, :>, 50
      assert_equal (0...sent).to_a, lines.filter_map { |line| line[%r{"GET /n(\d+) }, 1]&.to_i }.sort
    end
  end

  def test_a_file_that_has_been_moved_gets_no_more_lines
    server = redirected("-w", 2, "--access-log", "access.log")
    rotate(server, 1)
    old = %w[out.log.1 err.log.1 access.log.1].map { |name| server.path(name) }
    sizes = old.map { |path| File.size(path) }
    %w[/print /raise].each { |path| get(server, path) }
    server.stop

    assert_equal sizes, old.map { |path| File.size(path) }
    assert_includes File.read(server.path("out.log")), "reopened the access log and standard output and standard error"
    assert_includes File.read(server.path("access.log")), "GET /print"
  end

  def test_a_restart_keeps_what_is_in_the_files
    [[[], :USR2], [["-w", 2], :USR2], [["-w", 2], :USR1]].each do |processes, signal|
      server = redirected(*processes)
      server.signal(signal)
      text = wait_until("the restart") { File.read(server.path("out.log"))[/.*(?:restart: done|ready.*ready).*/m] }
      get(server, "/print")
      rotate(server, 1)
      get(server, "/print")

      assert_equal [1, 1], [text.scan(/^=== fairlead/).size, File.read(server.path("out.log")).scan(/^printed$/).size]
      assert_match(/^printed\n.*/m, File.read(server.path("out.log.1")))
      assert_equal 0, server.stop.exitstatus
    end
  end

  def test_a_file_that_cannot_be_reopened_is_told_and_stays
    server = redirected("--redirect-stdout", "logs/out.log", files: { "logs/keep" => "" })
    File.rename(server.path("logs"), server.path("gone"))
    server.signal(:HUP)
    wait_until("the warning") { File.read(server.path("err.log")).include?("cannot reopen #{server.path("logs/out.log")}") }
    get(server, "/print")

    assert_includes File.read(server.path("gone/out.log")), "printed"
  end

  def test_a_folder_that_does_not_exist_ends_the_start
    server = launch(APP, "--redirect-stdout", "log/out.log")

    assert_equal 1, server.wait_exit.exitstatus
    assert_equal "fairlead: --redirect-stdout: there is no folder #{server.path("log")}\n", server.stderr
  end

  def test_the_method_of_a_configuration_file_and_a_start_that_appends
    server = launch(APP, files: { "config/fairlead.rb" => "stdout_redirect 'all.log', 'all.log', true\n", "all.log" => "old\n" })
    wait_until("the start") { File.read(server.path("all.log")).match?(/\Aold\n.*ready/m) }

    assert_equal 0, server.stop.exitstatus
  end

  def test_the_event_log_can_be_json_also_for_what_the_engine_says
    [[], ["-w", 2]].each do |processes|
      server = serve_json(*processes)
      get(server, "/raise")
      connect(server).write("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n").tap(&:answer).close
      assert_equal 0, server.stop.exitstatus
      entries = (server.stdout + server.stderr).lines.map { |line| JSON.parse(line) }

      assert_equal [%w[time level pid event message]], entries.map(&:keys).uniq
      assert_empty %w[listening ready draining stopped app_failed engine_failed] - entries.map { |entry| entry["event"] }
      assert_match(/\Arefused 400 /, entries.find { |entry| entry["event"] == "engine_failed" }["message"])
    end
  end

  def test_a_start_that_fails_is_json_too
    server = launch("raise 'no'", "--log-format", "json")

    assert_equal 1, server.wait_exit.exitstatus
    assert_equal %w[error start_failed], JSON.parse(server.stderr).values_at("level", "event")
  end

  def test_a_formatter_and_a_logger_of_the_configuration_file
    server = launch(APP, "--log-requests", files: { "config/fairlead.rb" => <<~RUBY })
      require "logger"
      log_formatter { |text| "<\#{text}>" }
      custom_logger Logger.new("server.log", formatter: ->(level, _, _, text) { "\#{level} \#{text}\\n" })
    RUBY
    log = -> { File.exist?(server.path("server.log")) ? File.read(server.path("server.log")) : "" }
    wait_until("the start") { log.call.include?("ready") }
    get(with_addresses(server, log.call), "/seen")
    server.stop

    assert_match(/^INFO <fairlead \S+ ready/, log.call)
    assert_match(%r{^INFO <127\.0\.0\.1 .*"GET /seen HTTP/1\.1" 200}, log.call)
    assert_equal ["", ""], [server.stdout, server.stderr]
  end

  def test_debug_tells_more
    server = serve(APP, "--debug", "-t", 1)
    server.stop

    assert_match(/^configuration: .*max_threads is 1 \(--threads\)/, server.stdout)
    assert_match(/^thread fairlead 1 serves\n.*thread fairlead 1 ends$/m, server.stdout)
  end

  def test_a_forced_end_tells_which_request_was_where
    app = "run ->(env) { File.write('inside', '') && sleep }"
    [["shutdown_debug on_force: true", 1], ["shutdown_debug", 1], ["shutdown_debug false", 0]].each do |line, times|
      server = serve(app, "--shutdown-timeout", "0.2", files: { "config/fairlead.rb" => "#{line}\n" })
      connect(server).request("GET", "/slow")
      wait_until("the request") { File.exist?(server.path("inside")) }
      server.stop

      assert_equal times, server.stdout.scan(/^thread fairlead \d \(sleep\w*, GET \/slow\)\n\t.*config\.ru:1:in `sleep'/).size, line
    end
  end

  private

  # Starts a server with redirected streams. Its output is in its files.
  def redirected(*arguments, **options)
    server = launch(APP, *REDIRECT, *arguments, **options)
    out = server.path(arguments.include?("--redirect-stdout") ? arguments[arguments.index("--redirect-stdout") + 1] : "out.log")
    text = wait_until("the start") { File.exist?(out) && File.read(out)[/.*ready/m] }
    with_addresses(server, text)
  end

  def serve_json(*arguments)
    server = launch(APP, "--log-format", "json", *arguments)
    wait_until("the start") { server.stdout.include?('"ready"') }
    with_addresses(server, server.stdout)
  end

  # The server's addresses are in a file, not in its standard output.
  def with_addresses(server, text)
    server.define_singleton_method(:addresses) { text.scan(%r{listening on (http://[\w.:]+)}).flatten }
    server
  end

  # Sends numbered requests until the block has returned; returns the number of responses.
  def under_load(server)
    sent = 0
    done = false
    client = Thread.new do
      until done
        get(server, "/n#{sent}")
        sent += 1
      end
    end
    wait_until("the first requests") { sent > 20 }
    yield
    last = sent
    wait_until("more requests") { sent > last + 20 }
    done = true
    client.join
    sent
  end

  # Renames the files, and returns once no process has an old one open.
  def rotate(server, number)
    paths = Dir.glob(server.path("*.log")).reject { |path| File.basename(path).start_with?("std") }
    paths.each { |path| File.rename(path, "#{path}.#{number}") }
    server.signal(:HUP)
    moved = paths.map { |path| "#{path}.#{number}" }
    wait_until("the new files") do
      [server.pid, *server.worker_pids].all? { |pid| (open_files(pid) & moved).empty? }
    end
  end
end
