# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/control"
require "support/needed_gems"

# Compares the control servers of Puma and Fairlead: keys and kinds of values, status codes, types and texts. Lists the parts
# that only newer versions of Puma have.
class PumaComparisonTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled
  include Fairlead::Test::NeededGems

  APP = "run ->(env) { [200, {}, ['hello']] }"

  # Keys that Puma has had since version 6.5, 7 or 8.
  NEWER = %w[busy_threads io_threads backlog_max reactor_max versions].freeze

  # Keys that no Puma has.
  OURS = %w[cgroup fairlead].freeze

  # A real Puma. Its ready line is different.
  class Puma < Fairlead::Test::ServerProcess
    PROGRAM = "/usr/bin/puma"

    def self.available? = File.executable?(PROGRAM)

    def ready? = stdout.include?("Use Ctrl-C to stop") && stdout.include?("Starting control server")

    private

    def command = [PROGRAM, *@arguments]
  end

  def setup
    skip "#{Puma::PROGRAM} is not installed (package puma)" unless Puma.available?
    needs_gems("puma")
  end

  def puma(*flags) = own(Puma.new(APP, *flags, *flags_of_puma)).start

  # Puma writes the URL as in its configuration.
  def flags_of_puma
    port = TCPServer.open("127.0.0.1", 0) { |server| server.local_address.ip_port }
    ["--control-url", "tcp://127.0.0.1:#{port}", "--control-token", TOKEN, "--state", STATE]
  end

  # Keys and kinds of values, at every depth.
  def shape(value)
    case value
    when Hash then value.transform_values { |part| shape(part) }
    when Array then value.first(1).map { |part| shape(part) }
    when true, false then :boolean
    else value.class
    end
  end

  # The shape without the keys that only one of the two has.
  def without(shape, keys)
    case shape
    when Hash then shape.except(*keys).transform_values { |part| without(part, keys) }
    when Array then shape.map { |part| without(part, keys) }
    else shape
    end
  end

  # The stats once workers have checked in.
  def stats(server)
    wait_until("statistics of all workers") do
      stats = json(server, "stats")
      stats if stats.fetch("worker_status", []).none? { |worker| worker["last_status"].empty? }
    end
  end

  [["a_single_process", []], ["workers", ["-w", "2"]]].each do |name, flags|
    define_method(:"test_the_statistics_of_#{name}_have_the_same_keys_and_kinds_of_values") do
      theirs = shape(stats(puma(*flags)))
      ours = shape(stats(serve(APP, *flags, *FLAGS)))

      assert_equal theirs, without(ours, OURS + NEWER - theirs.to_s.scan(/"(\w+)"/).flatten)
    end

    define_method(:"test_the_answers_of_#{name}_are_the_same") do
      theirs = puma(*flags)
      ours = serve(APP, *flags, *FLAGS)
      %w[/gc?token=s3cret /nothing?token=s3cret /stats /stats?token=x /a/b/gc?token=s3cret /reload-worker-directory?token=s3cret]
        .each { |target| assert_equal(*[theirs, ours].map { |server| answer(server, target) }, target) }
      assert_equal(*[theirs, ours].map { |server| shape(json(server, "gc-stats")) })
      assert_equal(*[theirs, ours].map { |server| shape(json(server, "thread-backtraces")) })
    end
  end

  # Status, type and body.
  def answer(server, target) = control(server, target).to_a

  Answer = Struct.new(:status, :type, :body)

  # Old versions of Puma write field names with capitals, which HttpClient refuses.
  def control(server, target)
    socket = TCPSocket.new("127.0.0.1", Integer(state(server)["control_url"][/\d+\z/], 10))
    socket.write("GET #{target} HTTP/1.1\r\nhost: localhost\r\n\r\n")
    head, body = socket.read.split("\r\n\r\n", 2)
    Answer.new(Integer(head[/ (\d+) /, 1], 10), head[/^content-type: (.*?)\r?$/i, 1], body)
  ensure
    socket&.close
  end

  def test_state_files_have_the_same_lines
    assert_equal(*[puma, serve(APP, *FLAGS)].map { |server| File.read(server.path(STATE)).lines.map { |line| line[/\A[\w-]+:?/] } })
  end

  def test_pumactl_steers_fairlead
    server = serve(APP, "-w", "2", *FLAGS)
    run = ->(*words) { Open3.capture2e("/usr/bin/pumactl", "-S", server.path(STATE), *words) }

    assert_match(/^Puma is started$/, run["status"].first)
    assert_equal json(server, "stats").keys, JSON.parse(run["stats"].first.lines.last).keys
    %w[gc gc-stats thread-backtraces phased-restart].each { |command| assert_predicate run[command].last, :success?, command }
    wait_for_status(server, "the end of the restart") { |now| now.dig("restart", "state") == "done" }

    assert_predicate run["stop"].last, :success?
    assert_equal 0, server.wait_exit.exitstatus
  end
end
