# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Sources of messages: requests, threads, timers, other processes of the server, the supervisor; and the reach of the
# messages.
class PublishersTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  LISTENING = Fairlead::Test::RealTimeServing::CONSOLE.sub("= (@client = client)", "= client.subscribe('all')").freeze

  # Code that publishes "hello" once.
  SOURCES = {
    "a request" => "Fairlead.publish('all', 'hello')",
    "keywords" => "Fairlead.publish(to: 'all', message: 'hello')",
    "a thread" => "Thread.new { Fairlead.publish('all', 'hello') }.join; 1",
    "a timer" => "Fairlead.run_after(0.01) { Fairlead.publish('all', 'hello') }; 1",
    "a repeated timer" => "Fairlead.run_every(0.01, 1) { Fairlead.publish('all', 'hello') }; 1",
    "a deferred task" => "Fairlead.defer { Fairlead.publish('all', 'hello') }; 1",
    "a subscription" => "Fairlead.subscribe('first') { Fairlead.publish('all', 'hello') }; Fairlead.publish('first', '', Fairlead::PubSub::PROCESS)"
  }.freeze

  def test_whatever_publishes_reaches_every_worker
    [["-t", 2], ["-w", 2, "-t", 2], ["-w", 4, "-t", 1]].each do |shape|
      server = pushing(LISTENING, *shape)
      clients = everywhere(server)
      SOURCES.each do |source, code|
        requested(server, code)

        assert_equal [[:text, "hello"]] * clients.size, clients.map(&:receive), "#{source}, #{shape}"
      end
      requested(server, "Fairlead.publish('all', 'end')")
      assert_equal [[:text, "end"]] * clients.size, clients.map(&:receive), "each of them once"
    end
  end

  # Engine => recipients of a message from the first worker.
  SCOPES = { "nil" => :all, "Fairlead::PubSub::CLUSTER" => :all, "Fairlead::PubSub::PROCESS" => :own, "false" => :own,
             "Fairlead::PubSub::SIBLINGS" => :others }.freeze

  def test_a_message_goes_as_far_as_it_is_meant_to
    server = pushing(LISTENING, "-w", 2, "-t", 2)
    by_pid = everywhere(server).group_by { |client| told(client, "Process.pid") }
    own, others = by_pid.values.map { |clients| clients.first(2) }
    SCOPES.each do |engine, scope|
      told(own.first, "client.publish('all', '#{engine}', #{engine})")
      told(own.first, "client.publish('all', 'end')")

      by_pid.values.flatten.each { |client| client.wait_for("the end of #{engine}") { client.messages.include?([:text, "end"]) } }
      heard = [own, others].map { |clients| clients.map { |client| client.messages.slice!(0..).include?([:text, engine]) } }
      by_pid.values.flatten.each { |client| client.messages.clear }
      assert_equal [[scope != :others] * 2, [scope != :own] * 2], heard, engine
    end
  end

  def test_a_subscription_made_before_the_fork_is_inherited_by_every_worker
    setup = "Fairlead.subscribe('all') { |_, message| Notes.add(message + ' ' + Process.pid.to_s) }"
    server = pushing(CONSOLE, "-w", 2, "--preload", setup: setup)
    requested(server, "Fairlead.publish('all', 'hello')")

    assert_equal server.worker_pids.map { |pid| "hello #{pid}" }.sort, wait_for_notes(server, 2).sort
  end

  def test_a_subscription_of_an_application_that_each_worker_loads
    setup = "Fairlead.subscribe('all') { |_, message| Notes.add(message + ' ' + Process.pid.to_s) }"
    server = pushing(CONSOLE, "-w", 2, "--no-preload", setup: setup)
    requested(server, "Fairlead.publish('all', 'hello')")

    assert_equal server.worker_pids.map { |pid| "hello #{pid}" }.sort, wait_for_notes(server, 2).sort
  end

  def test_the_process_with_the_hooks_of_the_file_can_publish
    file = <<~RUBY
      after_booted do
        Thread.new { loop { sleep 0.05; Fairlead.publish("all", "from " + Process.pid.to_s) if File.exist?("go") } }
      end
    RUBY
    server = pushing(LISTENING, "-w", 2, files: { "config/fairlead.rb" => file })
    clients = everywhere(server)
    server.write("go", "")

    assert_equal [[:text, "from #{server.spawner_pid}"]] * clients.size, clients.map(&:receive)
  end

  def test_a_worker_that_is_added_takes_part
    server = pushing(LISTENING, "-w", 1, "-t", 2)
    first = web_socket(server)
    told(first, "1")
    server.signal(:TTIN)
    server.wait_for_workers(2)
    server.wait_for_output(/worker 1 booted/)
    clients = everywhere(server, 2)
    told(first, "client.publish('all', 'hello')")

    assert_equal [[:text, "hello"]] * clients.size, clients.map(&:receive)
  end

  def test_messages_are_delivered_while_ruby_is_busy
    server = pushing(LISTENING, "-w", 2, "-t", 1)
    by_pid = everywhere(server).group_by { |client| told(client, "Process.pid") }
    busy, other = by_pid.values.map { |clients| clients.first(2) }
    busy.first.send_text("nil until File.exist?('go'); 'burnt'")
    20.times { |number| told(other.first, "client.publish('all', 'item #{number}')") }

    assert_equal (0...20).map { |number| "item #{number}" }, busy.last.receive_all(20)
    refute_includes busy.first.messages.map(&:last), '= "burnt"'
    server.write("go", "")
    busy.first.wait_for("the end of the work") { busy.first.messages.include?([:text, '= "burnt"']) }
  end

  private

  # Returns clients with active subscriptions, at least two in each worker.
  def everywhere(server, workers = [server.worker_pids.size, 1].max)
    clients = []
    pids = []
    wait_until("clients in #{workers} workers", seconds: 20) do
      clients << web_socket(server)
      pids << told(clients.last, "Process.pid")
      pids.tally.values.count { |found| found > 1 } == workers
    end
    clients
  end
end
