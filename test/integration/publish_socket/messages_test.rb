# frozen_string_literal: true

require "test_helper"
require "support/needed_gems"
require "support/outside_publishers"

# Messages of processes beside a server.
class PublishSocketMessagesTest < Minitest::Test
  include Fairlead::Test::OutsidePublishers

  SHAPES.each do |name, workers|
    define_method(:"test_each_process_that_serves_hears_each_message_once_and_in_order_#{name}") do
      server = hearing(workers)
      said = beside(server, "p((0...500).map { |number| server.publish('news', number.to_s) }.uniq, Fairlead.autoload?(:Native).nil?)")
      wait_for_hearing(server, 499, processes: [workers, 1].max)

      assert_equal "[true]\nfalse\n", said, "the extension is not needed"
      assert_equal [(0...500).map(&:to_s)], heard(server).values.uniq
      assert_equal server.serving_pids.map(&:to_s).sort, heard(server).keys.sort
      assert_ends(server)
      refute_path_exists server.path(SOCKET)
      assert_empty server.stderr
    end
  end

  def test_messages_of_every_size_arrive_whole
    server = hearing(2)
    publisher, log = publisher(server)
    longest = Fairlead::PubSub::RunningServer::LONGEST - 4
    sizes = [0, 1, 65_536, 1_000_000, longest]
    sizes.each { |size| assert publisher.publish("news", "x" * size), size }
    wait_for_hearing(server, longest, processes: 2)

    assert_equal [["", "x", *sizes[2..].map(&:to_s)]], heard(server).values.uniq
    refute publisher.publish("news", "x" * (longest + 1))
    assert_match(/\AERROR a message of #{longest + 1} bytes to news is lost/, log.string)
  end

  def test_channels_and_messages_are_bytes
    server = hearing(0)
    publisher, = publisher(server)

    assert publisher.publish("news", "caf\u00E9")
    assert publisher.publish("\u2605" * 200, "a channel that nobody hears")
    assert publisher.publish("news", "\xFF".b)
    wait_until("both") { File.exist?(server.path("heard")) && heard_bytes(server) == ["caf\u00E9".b, "\xFF".b] }
  end

  # Messages with and without history have no common order.
  def test_a_message_may_be_for_the_history_too
    app = HEARING.sub("[200, {}, [", '[200, {}, [Fairlead::PubSub.history("news", since: 0).map(&:last).join(","), ";", ')
    server = supervised(2, app: app, files: CABLE)
    publisher, = publisher(server)
    results = %w[one two three].map { |text| publisher.publish("news", text, history: text != "two") }
    wait_until("all messages") { heard(server).values.map(&:sort) == [%w[one three two]] * 2 }

    assert_equal [true], results.uniq
    assert_match(/\Aone,three;/, answer(server))
  end

  def test_fairlead_publish_takes_this_way_once_it_is_the_default
    server = hearing(2)
    beside(server, <<~RUBY)
      Fairlead::PubSub.default = server
      exit(Fairlead.publish("news", "hello") && Fairlead.publish(to: :news, message: "again"))
    RUBY

    wait_for_hearing(server, "again", processes: 2)
    assert_equal [%w[hello again]], heard(server).values.uniq
  end

  # The way goes through the supervisor, and back to the publishing worker.
  SHAPES.each do |name, workers|
    define_method(:"test_a_process_of_the_server_may_take_this_way_too_#{name}") do
      app = "Fairlead::PubSub.default = Fairlead::PubSub::RunningServer.of(Dir.pwd)\n#{HEARING.sub("[200", 'Fairlead.publish("news", "x"); [200')}"
      server = supervised(workers, app: app, files: CABLE)
      reply(server)
      wait_for_hearing(server, "x", processes: [workers, 1].max)

      assert_equal [%w[x]], heard(server).values.uniq
    end
  end

  def test_while_the_broker_is_away_the_server_of_this_machine_gets_broadcasts
    missing = Fairlead::Test::NeededGems.missing("redis")
    skip missing if missing

    server = hearing(2)
    beside(server, <<~RUBY)
      Fairlead::Cable.connect("redis://127.0.0.1:1")
      Fairlead::Cable.server = server
      3.times { |number| Fairlead::Cable.broadcast("news", number.to_s) and exit!(1) }
    RUBY

    wait_for_hearing(server, 2, processes: 2)
  end

  # Such as the plugin of Solid Queue, which forks its processes before there are workers.
  def test_a_process_that_the_application_has_forked_reaches_workers_that_came_later
    server = supervised(2, "--preload", app: FORKING, files: CABLE)
    assert_replaces(server, server.serving_pid)
    assert_reached_by_fork(server, 2)
  end

  def test_a_process_that_the_application_has_forked_reaches_a_server_without_workers
    assert_reached_by_fork(supervised(0, app: FORKING, files: CABLE), 1)
  end

  def test_threads_and_forked_processes_do_not_disturb_each_other
    server = hearing(0)
    beside(server, <<~RUBY)
      say = ->(name) { 100.times { |number| server.publish("news", "\#{name} \#{number}") or exit!(1) } }
      say.("first")
      threads = Array.new(3) { |number| Thread.new { say.("thread \#{number}") } }
      pids = Array.new(3) { |number| fork { say.("fork \#{number}") } }
      threads.each(&:join)
      pids.each { |pid| Process.wait2(pid).last.success? or exit!(2) }
      say.("last")
    RUBY
    wait_for_hearing(server, "last 99")
    by_name = heard(server).values.first.group_by { |text| text[/.*(?= )/] }

    assert_equal [100], by_name.values.map(&:size).uniq
    assert_equal [8, [(0...100).to_a]], [by_name.size, by_name.values.map { |texts| texts.map { |text| text[/\d+\z/].to_i } }.uniq]
  end

  def test_a_thread_that_is_killed_leaves_no_reply_to_the_next_one
    server = hearing(0)
    publisher, log = publisher(server)
    random = Random.new(1)
    200.times do |number|
      thread = Thread.new { publisher.publish("news", number.to_s) }
      thread.join(random.rand(0.0005))
      thread.kill.join
      assert publisher.publish("nothing", "here")
    end

    assert publisher.publish("news", "the end")
    wait_for_hearing(server, "the end")
    assert_empty log.string
    assert_equal heard(server).values.first, heard(server).values.first.uniq
  end

  private

  FORKING = <<~RUBY.freeze
    #{HEARING}
    fork do
      sleep(0.01) until File.exist?("go")
      File.write("said", [Fairlead.publish("news", "plain"), Fairlead::Cable.broadcast("news", "cable")].inspect)
      exit!(0)
    end
  RUBY
  private_constant :FORKING

  def assert_reached_by_fork(server, processes)
    server.write("go", "")
    wait_until("both messages in each process") { heard(server).values.map(&:sort) == [%w[cable plain]] * processes }
    wait_until("the results") { File.exist?(server.path("said")) && File.read(server.path("said")) == "[true, true]" }

    assert_empty server.stderr.lines.grep(/publish|not take/)
  end

  def heard_bytes(server) = File.binread(server.path("heard")).lines(chomp: true).map { |line| line.split(" ".b, 2).last }
end
