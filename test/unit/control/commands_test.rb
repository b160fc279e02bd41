# frozen_string_literal: true

require "test_helper"
require "json"
require "support/fake_server"

# What the control server answers: status codes, types and texts are Puma's.
class CommandsTest < Minitest::Test
  Control = Fairlead::Control
  Service = Struct.new(:configuration, :listeners)

  def setup
    @server = Fairlead::Test::FakeServer.new
  end

  def commands(data_only: false, **options)
    options = { workers: @server.status[:workers], bind: "tcp://127.0.0.1:0", max_threads: 5 }.merge(options)
    service = Service.new(Fairlead::Configuration.from_options(options), ["http://127.0.0.1:80"])
    health = Control::Health.new(@server, Control::Pulse.new(@server))
    peaks = Control::Peaks.new(-> { { engines: [] } })
    Control::Commands.new(@server, service, token: Control::Token.new("t"), health: health, peaks: peaks, data_only: data_only)
  end

  def call(target, **options) = commands(**options).call(Control::Request.new("GET #{target} HTTP/1.1"))

  def command(name, **options) = call("/#{name}?token=t", **options)

  def with_workers(**status)
    @server = Fairlead::Test::FakeServer.new(workers: 2, **status)
  end

  {
    "stop" => :stop, "halt" => :halt, "restart" => :restart, "phased-restart" => :phased_restart, "reopen-log" => :reopen_logs,
    "worker-count-up" => :add_worker, "worker-count-down" => :remove_worker, "info" => :backtraces
  }.each do |name, asked|
    define_method(:"test_#{name}_asks_the_server_for_#{asked}") do
      response = command(name)

      assert_equal [200, "application/json", '{ "status": "ok" }'], response.to_a
      assert_equal [asked], @server.asked
    end
  end

  def test_the_path_before_the_command_does_not_matter
    assert_equal 200, call("/puma/gc?x=y&token=t").status
  end

  def test_a_wrong_token_is_refused_before_anything_else
    ["/stop", "/stop?token=x", "/nothing"].each do |target|
      assert_equal [403, "text/plain", "Invalid auth token"], call(target).to_a
    end
    assert_empty @server.asked
  end

  def test_an_unknown_command_is_refused
    assert_equal [404, "text/plain", "Unsupported action"], command("nothing").to_a
  end

  def test_with_data_only_nothing_is_changed
    assert_equal [404, "text/plain", 'Command "stop" unavailable'], command("stop", data_only: true).to_a
    assert_empty @server.asked
    assert_equal([200, 200, 200], %w[stats gc-stats status].map { |name| command(name, data_only: true).status })
  end

  def test_what_needs_workers_is_not_available_without_them
    assert_equal [404, "application/json", '{ "error": "refork not available" }'], command("refork").to_a
    assert_equal [404, "application/json", '{ "error": "reload_worker_directory not available" }'], command("reload-worker-directory").to_a
    with_workers

    assert_equal 200, command("reload-worker-directory").status
  end

  def test_gc_stats_are_those_of_ruby
    assert_equal GC.stat.keys.map(&:to_s), JSON.parse(command("gc-stats").body).keys
    before = GC.count
    command("gc")

    assert_operator GC.count, :>, before
  end

  def test_backtraces_have_a_name_for_each_thread
    backtraces = JSON.parse(command("thread-backtraces").body)

    assert_equal Thread.list.size, backtraces.size
    backtraces.each { |thread| assert_equal %w[name backtrace], thread.keys }
    assert(backtraces.any? { |thread| thread["backtrace"].to_s.include?(__FILE__) })
  end

  def test_the_status_has_the_last_restart_and_its_reason
    with_workers(restart: { kind: :phased, state: :failed, error: "config.ru:1: no", at: Time.utc(2026) })
    status = JSON.parse(command("status").body)

    assert_equal({ "kind" => "phased", "state" => "failed", "error" => "config.ru:1: no", "at" => "2026-01-01T00:00:00.000Z" }, status["restart"])
    assert_equal [100, "ready", 2, [200, 201]], [*status.values_at("pid", "state", "workers"), status["worker_status"].map { |worker| worker["pid"] }]
    assert_equal ["http://127.0.0.1:80"], status["addresses"]
  end

  def test_the_probes_need_no_token
    assert_equal [200, '{"status":"ready"}'], call("/ready").to_a.values_at(0, 2)
    assert_equal [200, '{"status":"live"}'], call("/live").to_a.values_at(0, 2)
  end
end
