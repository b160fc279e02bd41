# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/processes"
require "support/queue_plugin"

# A plugin for Puma in an unchanged config/puma.rb, with and without workers.
class PluginsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  APP = "run ->(env) { [200, {}, [Puma.stats]] }"
  CONFIGURATION = "plugin :tmp_restart\nplugin :queue\nqueue_mode :async\nmax_threads 3\n"
  MODES = [["without_workers", []], ["with_workers", ["-w", "2"]]].freeze

  def serve_queue(*flags, configuration: CONFIGURATION)
    files = { "config/puma.rb" => configuration, "lib/puma/plugin/queue.rb" => Fairlead::Test::QUEUE_PLUGIN }
    serve(APP, "-I", "lib", *FLAGS, *flags, files: files)
  end

  def queues(server, what) = server.stdout.scan(/queue: #{what} (\d+)/).flatten.map { |pid| Integer(pid, 10) }

  def wait_for_queues(server, count) = wait_until("#{count} queues") { (pids = queues(server, "started")).size == count && pids }

  def gone?(pid) = !Fairlead::Test::Processes.alive?(pid)

  MODES.each do |name, flags|
    define_method(:"test_it_starts_with_the_server_and_ends_with_it_#{name}") do
      server = serve_queue(*flags)
      queue = wait_for_queues(server, 1).first

      refute gone?(queue)
      assert_equal 0, server.stop.exitstatus
      assert_equal [queue], queues(server, "stopped")
      assert gone?(queue)
    end

    define_method(:"test_the_server_ends_when_the_child_of_the_plugin_is_gone_#{name}") do
      server = serve_queue(*flags)
      Process.kill(:KILL, wait_for_queues(server, 1).first)

      assert_equal 0, server.wait_exit.exitstatus
    end

    define_method(:"test_after_a_hot_restart_there_is_one_again_#{name}") do
      server = serve_queue(*flags)
      old = wait_for_queues(server, 1).first
      ctl("-S", server.path(STATE), "--wait", "restart")
      new = wait_for_queues(server, 2).last
      wait_until("the end of the old one") { gone?(old) }

      refute gone?(new)
      assert_equal 200, get(server).status
    end

    define_method(:"test_a_block_for_the_restart_gets_the_launcher_#{name}") do
      server = serve_queue(*flags, configuration: "#{CONFIGURATION}on_restart { |launcher| launcher.log_writer.stdout.puts 'restarting' }\n")
      wait_for_queues(server, 1)
      ctl("-S", server.path(STATE), "--wait", "restart")

      assert_match(/^restarting$/, server.stdout)
      refute_match(/before_restart failed/, server.stderr)
    end

    define_method(:"test_one_that_refuses_prevents_the_start_#{name}") do
      picky = "Puma::Plugin.create { def start(_) = raise('not like this') }"
      server = launch(APP, "-I", "lib", *flags, files: { "config/puma.rb" => "plugin :picky", "lib/puma/plugin/picky.rb" => picky })

      assert_equal 1, server.wait_exit.exitstatus
      assert_match(/fairlead: plugin picky: not like this \(RuntimeError\)$/, server.stderr)
    end

    define_method(:"test_what_runs_in_the_background_signals_no_server_that_has_ended_#{name}") do
      noisy = <<~RUBY
        Puma::Plugin.create do
          def start(launcher)
            launcher.events.after_stopped { @over = true }
            in_background { sleep 0.001 until @over; loop { Process.kill(:INT, $$); sleep 0.001 } }
          end
        end
      RUBY
      slow = "plugin :noisy\nafter_stopped { 50.times { sleep 0.01 } }\n" # so that the thread has time to signal
      server = serve(APP, "-I", "lib", *flags, files: { "config/puma.rb" => slow, "lib/puma/plugin/noisy.rb" => noisy })

      assert_equal 0, server.stop.exitstatus
      assert_empty server.stderr
    end

    define_method(:"test_the_application_can_ask_puma_for_statistics_#{name}") do
      server = serve_queue(*flags)
      theirs = JSON.parse(get(server).body)

      assert_equal json(server, "stats").keys, theirs.keys
      assert_equal 3, (theirs["worker_status"]&.first&.fetch("last_status") || theirs)["max_threads"]
    end
  end

  def test_a_phased_restart_replaces_it_with_the_code
    server = serve_queue("-w", "2")
    old = wait_for_queues(server, 1).first
    server.write("lib/puma/plugin/queue.rb", Fairlead::Test::QUEUE_PLUGIN.sub("queue: mode", "queue: new mode"))
    server.signal(:USR1)
    server.wait_for_output(/queue: new mode async/)
    wait_for_queues(server, 2)

    wait_until("the end of the old one") { gone?(old) }
  end

  def test_a_restart_that_fails_leaves_it_alone
    server = serve_queue("-w", "2")
    queue = wait_for_queues(server, 1).first
    server.write("config.ru", "raise 'no luck'")
    server.signal(:USR1)
    server.wait_for_output(/phased restart: failed/)

    refute gone?(queue)
    assert_equal [queue], queues(server, "started")
  end

  def test_it_ends_when_the_server_is_killed
    server = serve_queue
    queue = wait_for_queues(server, 1).first
    server.signal(:KILL)

    wait_until("the end of the child") { gone?(queue) }
  end

  def test_it_may_set_what_the_file_does_not_set_and_have_settings_of_its_own
    server = serve_queue

    assert_match(/queue: mode async, control #{state(server)["control_url"]}$/, server.stdout)
    assert_match(/0:3 threads/, server.stdout)
    assert_match(/\[by the plugin\]/, Fairlead::Test::Processes.title(server.pid))
  end

  def test_one_that_is_not_there_is_named_with_its_line
    server = launch(APP, files: { "config/puma.rb" => "\nplugin :nowhere\n" })

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(%r{^fairlead: config/puma\.rb:2: plugin nowhere: there is no puma/plugin/nowhere\.rb on the load path}, server.stderr)
  end
end
