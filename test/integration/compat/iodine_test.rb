# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Applications that name Iodine, under `fairlead`.
class IodineIntegrationTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  REQUIRE = 'require "fairlead/compat/iodine"'

  def test_clients_and_messages_are_iodines
    server = pushing(<<~RUBY, setup: REQUIRE)
      def on_open(client)
        client.subscribe("n*", match: :redis)
        client.subscribe(to: :bin, as: :binary)
        client.write(client.is_a?(Iodine::Connection))
      end
      def on_message(client, data) = client.publish(*data.split)
    RUBY
    client = web_socket(server)
    assert_equal [:text, "true"], client.receive
    client.send_text("news one")
    client.send_text("bin two")

    assert_equal [[:text, "one"], [:binary, "two"]], Array.new(2) { client.receive }
    requested(server, "Iodine.publish('other', 'three') && Iodine.publish(to: 'nice', message: 'four')")

    assert_equal [:text, "four"], client.receive
  end

  def test_a_subscription_made_before_the_fork_is_one_of_each_worker
    setup = "#{REQUIRE}\nIodine.subscribe(:all) { |name, text| Notes.add([name, text, name.encoding, Process.pid].join(' ')) }"
    server = pushing("", "-w", 2, setup: setup)
    requested(server, "Iodine.publish(:all, 'hello')")
    heard = wait_for_notes(server, 2)

    assert_equal server.worker_pids, heard.map { |line| Integer(line.split.last, 10) }.sort
    assert_equal ["all hello UTF-8"], heard.map { |line| line.rpartition(" ").first }.uniq
  end

  def test_timers_and_tasks_run
    setup = <<~RUBY
      #{REQUIRE}
      Iodine.run_after(50) { Notes.add("after") }
      Iodine.run_every(20, 3) { Notes.add("every") }
      Iodine.run { Notes.add("run") }
      Iodine.on_idle { Notes.add("idle") }
    RUBY
    server = pushing("", setup: setup)

    assert_equal({ "run" => 1, "idle" => 1, "every" => 3, "after" => 1 }, wait_for_notes(server, 6).tally)
  end

  def test_an_engine_hears_of_subscriptions_and_carries_messages
    setup = <<~RUBY
      #{REQUIRE}
      class Reporter < Iodine::PubSub::Engine
        def subscribe(to, match) = Notes.add("subscribe \#{to} \#{match.inspect}")
        def unsubscribe(to, match) = Notes.add("unsubscribe \#{to} \#{match.inspect}")
        def publish(to, message) = Iodine::PubSub::CLUSTER.publish(to, message.upcase)
      end
      Iodine::PubSub.default = Reporter.new
    RUBY
    server = pushing('def on_open(client) = (client.subscribe("a"); client.subscribe("b*", match: :redis); client.write("on"))', setup: setup)
    client = web_socket(server)
    client.receive
    requested(server, "Iodine.publish('a', 'loud')")

    assert_equal "LOUD", client.receive.last
    client.close(1000)
    assert_equal ["subscribe a nil", "subscribe b* :redis", "unsubscribe a nil", "unsubscribe b* :redis"], wait_for_notes(server, 4).sort
  end

  def test_states_are_reached_where_each_worker_loads_the_application
    setup = "#{REQUIRE}\non_worker_boot { Notes.add('booted') }\nIodine.on_state(:on_start) { Notes.add('started') }"
    server = pushing("", "-w", 1, "--no-preload", setup: setup)

    assert_equal %w[booted started], wait_for_notes(server, 2)
    assert_equal "[false, true, 1]", requested(server, "[Iodine.master?, Iodine.worker?, Iodine.workers]")
  end

  def test_settings_that_come_too_late_are_told
    server = pushing("", "-t", "1:3", setup: "#{REQUIRE}\nIodine.threads = 8")

    assert_equal "3", requested(server, "Iodine.threads")
    assert_match(/config\.ru:\d+: warning: Iodine\.threads= has no effect/, server.stderr)
  end

  def test_beside_the_gem_it_does_not_start
    server = launch("module Iodine; end\n#{REQUIRE}\nrun ->(_) { [200, {}, []] }")

    assert_equal 1, server.wait_exit.exitstatus
    assert_match(/^fairlead: the gem iodine is loaded/, server.stderr)
  end
end
