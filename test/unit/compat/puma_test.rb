# frozen_string_literal: true

require "test_helper"
require "support/fake_server"
require "json"
require "logger"
require "stringio"

# The parts of fairlead/compat/puma that plugins and monitoring gems for Puma use.
class PumaCompatTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting

  Service = Struct.new(:configuration, :listeners, :log)
  Listeners = Struct.new(:ports)

  def setup
    require "fairlead/compat/puma"
    @log = Fairlead::Test::CollectedLog.new
    @server = Fairlead::Test::FakeServer.new
  end

  def service(plugin_settings: {}, **options)
    layer = Fairlead::Configuration::Layer.from({ bind: "tcp://127.0.0.1:0" }.merge(options), origin: "test")
    Service.new(Fairlead::Configuration.new([layer], plugin_settings: plugin_settings), Listeners.new([80, 81]), @log)
  end

  def launcher(...) = Puma::Launcher.new(@server, service(...))

  # Loads a plugin from a file with that text; returns a started Fairlead::Plugins.
  def start(text, name: "test#{object_id}")
    in_folder("puma/plugin/#{name}.rb" => text) do |folder|
      $LOAD_PATH.unshift(folder)
      Fairlead::Plugins.new(@server, service(plugin: [name])).tap(&:start)
    ensure
      $LOAD_PATH.delete(folder)
    end
  end

  def test_nothing_else_defines_the_constant
    assert_equal "", IO.popen([RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-e", <<~RUBY], &:read)
      require "fairlead"
      Fairlead.constants.each { |name| Fairlead.const_get(name) }
      print "defined" if defined?(Puma)
    RUBY
  end

  def test_files_that_require_parts_of_puma_load_nothing
    %w[puma puma/plugin puma/const puma/events].each { |part| refute require(part) }
  end

  def test_the_version_is_one_of_puma
    assert_operator Gem::Version.new(Puma::Const::VERSION), :>=, Gem::Version.new("8")
    assert_equal Puma::Const::VERSION, Puma::Const::PUMA_VERSION
  end

  def test_the_launcher_does_what_it_is_asked_for
    launcher = self.launcher
    %i[stop halt restart phased_restart].each { |name| assert launcher.public_send(name) }

    assert_equal %i[stop halt restart phased_restart], @server.asked
    assert_equal [80, 81], launcher.connected_ports
  end

  def test_options_have_pumas_names_and_those_that_plugins_have_set
    options = launcher(workers: 2, pid_file: "x.pid", plugin_settings: { metrics_url: "tcp://x" }).options

    assert_equal [2, "x.pid", ["tcp://127.0.0.1:0"], "tcp://x", nil], %i[workers pidfile binds metrics_url nothing].map { |name| options[name] }
    assert_equal ["tcp://x", 1, 2], [options.fetch("metrics_url"), options.fetch(:nothing, 1), options.fetch(:nothing) { |name| name.size - 5 }]
    assert_raises(KeyError) { options.fetch(:nothing) }
  end

  def test_gems_add_blocks_to_the_lists_of_hooks
    added = []
    options = launcher.options
    options[:before_worker_boot] ||= []
    options[:before_worker_boot] << (block = proc { |index| added << index })
    options[:on_worker_boot] << { block: ->(index) { added << (index + 1) }, id: nil } << [->(index) { added << (index + 2) }, :key]

    assert_same block, options[:before_worker_boot].to_a.fetch(-3)
    Fairlead::Hooks.of_process.run(:before_worker_boot, 1, log: @log)
    assert_equal [1, 2, 3], added
    assert_raises(ArgumentError) { options[:before_worker_boot] << 1 }
  ensure
    Fairlead::Hooks.of_process.instance_variable_get(:@blocks).delete(:before_worker_boot)
  end

  def test_the_configuration_itself_cannot_be_changed_any_more
    assert_raises(FrozenError) { launcher.options[:workers] = 3 }
  end

  def test_threads_are_yielded_with_their_backtraces
    threads = []
    launcher.thread_status { |name, backtrace| threads << [name, backtrace] }

    assert(threads.any? { |name, backtrace| name == "Thread: main" && backtrace.join.include?(__FILE__) })
  end

  def test_events_have_their_old_and_new_names
    events = launcher.events
    fired = []
    %i[on_booted after_booted on_restart before_restart on_stopped after_stopped].each { |name| events.public_send(name) { fired << name } }
    events.register(:on_booted) { fired << :registered }
    events.register(:state) { |state| fired << state }
    %i[after_booted before_restart after_stopped].each { |name| events.fire(name) }
    events.state(:done)

    assert_equal %i[on_booted after_booted registered on_restart before_restart on_stopped after_stopped done], fired
  end

  def test_a_block_that_raises_is_logged_and_the_others_run
    events = launcher.events
    events.after_booted { raise "no luck" }
    events.after_booted { @ran = true }
    events.fire(:after_booted)

    assert @ran
    assert_match(/plugin: after_booted failed: .*no luck/, @log.text)
  end

  def test_the_log_writer_writes_to_the_log
    writer = launcher.log_writer
    writer.log("one")
    writer.debug("two")

    assert_equal "one\n", @log.text
    refute_predicate writer, :debug?
    assert_raises(Fairlead::Error) { writer.error("three") }
  end

  def test_the_log_writer_has_the_streams_of_the_log
    writer = launcher.log_writer
    writer.stdout.puts "one"
    writer.stderr.write "two"

    assert_equal "one\ntwo", @log.text
    with_logger = Puma::LogWriter.new(Fairlead::EventLog.new(logger: Logger.new(StringIO.new)))
    without_streams = Puma::LogWriter.new(Object.new)

    assert_equal [$stdout, $stderr] * 2, [with_logger, without_streams].flat_map { |other| [other.stdout, other.stderr] }
  end

  def test_the_log_writer_has_pumas_other_methods
    writer = launcher.log_writer
    %i[connection_error unknown_error debug_error].each { |name| writer.public_send(name, RuntimeError.new(name.to_s), nil, "text") }
    writer.parse_error(RuntimeError.new("parse_error"), nil)
    writer.ssl_error(RuntimeError.new("ssl_error"), nil)
    logged = @log.text.lines.grep(/plugin: /).map { |line| line[/: (\w+_error) \(/, 1] }

    assert_equal %w[connection_error unknown_error parse_error ssl_error], logged
    assert_equal "text", writer.format("text")
  end

  def test_a_formatter_and_a_logger_of_a_plugin_apply_to_its_log_writer
    writer = launcher.log_writer
    writer.formatter = ->(text) { "<#{text}>" }
    writer.log("one")
    writer.custom_logger = StringIO.new
    writer.log("two")

    assert_equal ["<one>\n", "<two>"], [@log.text, writer.custom_logger.string]
  end

  def test_a_plugin_lives_through_start_boot_and_stop
    plugins = start(<<~RUBY)
      Puma::Plugin.create do
        def start(launcher)
          in_background { launcher.log_writer.log("background") }
          launcher.events.after_booted { launcher.log_writer.log("booted") }
          launcher.events.after_stopped { launcher.log_writer.log("stopped") }
          launcher.events.before_restart { launcher.log_writer.log("restarting") }
          launcher.events.register(:state) { |state| launcher.log_writer.log("state \#{state}") }
        end
      end
    RUBY

    plugins.booted
    wait_until("the background") { @log.text == "state booting\nstate running\nbooted\nbackground\n" }
    plugins.stopped

    assert_equal ["state stop", "stopped", "state done"], @log.text.lines(chomp: true).last(3)
  end

  def test_in_a_process_that_goes_on_plugins_hear_of_a_hot_restart_at_the_end
    plugins = start("Puma::Plugin.create { def start(launcher) = launcher.events.before_restart { launcher.log_writer.log('restarting') } }")
    plugins.will_restart

    assert_empty @log.text
    plugins.stopped

    assert_equal "restarting\n", @log.text
  end

  def test_a_plugin_that_raises_prevents_the_start
    error = assert_raises(Fairlead::PluginError) { start("Puma::Plugin.create { def start(_launcher) = raise('no luck') }", name: "unlucky") }

    assert_equal "plugin unlucky: no luck (RuntimeError)", error.message
    assert_match(/plugin: unlucky failed: .*no luck/, @log.text)
  end

  def test_a_plugin_that_is_not_there_is_named
    error = assert_raises(Fairlead::PluginError) { Fairlead::Plugins.load("nowhere") }

    assert_equal "nowhere", error.name
    assert_match(%r{there is no puma/plugin/nowhere\.rb on the load path}, error.message)
  end

  def test_a_file_that_a_plugin_needs_and_that_is_not_there_is_named_itself
    error = assert_raises(LoadError) { start("require 'nowhere/at/all'") }

    assert_equal "nowhere/at/all", error.path
  end

  def test_what_is_built_in_loads_nothing
    assert_equal [nil, nil], (%w[systemd tmp_restart].map { |name| Fairlead::Plugins.load(name) })
  end

  def test_without_a_server_there_are_no_statistics
    assert_equal [{}, "{}", nil], [Puma.stats_hash, Puma.stats, Puma.cli_config]
  end
end
