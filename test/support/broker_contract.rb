# frozen_string_literal: true

require "stringio"
require_relative "waiting"

module Fairlead
  module Test
    # The tests that each broker has to pass, against a real server. A class that includes it has `missing` (a reason to skip, or nil), `server`
    # (makes one, which can start, kill, pause and resume) and `engine`.
    module BrokerContract
      include Waiting

      # Names of all kinds: empty tokens, wildcards, long, not ASCII, not UTF-8, with control characters.
      NAMES = [
        "", ".", "a..b", ".a", "a.", "a b", "*", "a.*", ">", "a.>", "%", "%41", "A", "a\tb", "n\u00FC.\u{1F600}", "\xFF\xFE", "a\r\nPUB x 1", "\0",
        "'; DROP TABLE x; --", "\"quoted\"", "fairlead", "x" * 54, "x" * 55, "x" * 63, "x" * 64, "x" * 5000, "y.#{"x" * 5000}"
      ].map { |name| name.b.freeze }.freeze

      # Texts that could break a protocol.
      MESSAGES = [
        "", "\0", "\r\n", "'\"\\", "t1 0 x", "r1 0 1", "{}", "%s %1$s", "\u{1F600}", "\xFF\xC0", (0..255).to_a.pack("C*"), "$1", "\\x00",
        "+OK\r\nPUB x 1\r\nx", "x" * 7_000, "x" * 9_000, "\0" * 100_000, "\u00FC" * 200_000
      ].map { |message| message.b.freeze }.freeze

      # An engine like the one of another process.
      class Peer
        include Waiting

        attr_reader :engine, :inbox

        def initialize(engine)
          @inbox = inbox = Thread::Queue.new
          @engine = engine
          @engine.define_singleton_method(:deliver) { |channel, message| inbox << [channel, message] }
          @fence = "fence-#{object_id}"
        end

        def subscribe(to, match = nil)
          engine.subscribe(to, match)
          engine.wait_for(to, match)
        end

        def unsubscribe(to, match = nil) = engine.unsubscribe(to, match)
        def publish(to, message = "1") = engine.publish(to, message)

        # Returns the messages since the last call, including everything published before this one.
        def received
          subscribe(@fence)
          wait_until("publishing") { publish(@fence, "") }
          wait_until("the fence") { (@taken ||= []).concat(Array.new(inbox.size) { inbox.pop }).include?([@fence, ""]) }
          @taken.reject { |name, _| name == @fence }.tap { @taken = nil }
        end
      end

      def setup
        skip missing if missing

        @server = server
        @errors = StringIO.new
        @output = StringIO.new
        @threads = Thread.list
        Fairlead::Background.current.started(self, Fairlead::EventLog.new(output: @output, errors: @errors))
        @peers = []
        @peer = peer
      end

      def teardown
        @peers&.each { |peer| peer.engine.close }
        Fairlead::Background.current.stopped(self)
        @server&.destroy
      end

      def test_what_is_published_comes_back_once_to_each_process_that_subscribed
        other = peer
        [@peer, other].each { |each| each.subscribe("news") }
        other.subscribe("sport")
        assert_equal true, @peer.publish("news", "first")
        other.publish("sport", "second")
        other.publish("news", "third")

        assert_equal [%w[news first], %w[news third]], @peer.received
        assert_equal [%w[news first], %w[sport second], %w[news third]], other.received
      end

      def test_what_is_published_right_after_subscribing_comes_back
        100.times do |number|
          @peer.subscribe("channel-#{number}")
          @peer.publish("channel-#{number}")
        end

        assert_equal (0...100).map { |number| "channel-#{number}" }, @peer.received.map(&:first)
      end

      def test_names_of_all_kinds_are_different_channels
        NAMES.each { |name| @peer.subscribe(name) } # all of them, before the first message
        NAMES.reverse_each { |name| assert_equal true, @peer.publish(name, name), name[0, 20].inspect }

        received = @peer.received

        assert_equal NAMES.reverse.map { |name| name[0, 70] }, received.map { |name, _| name[0, 70] }
        assert(received.all? { |name, message| name == message })
      end

      def test_bytes_stay_what_they_are
        @peer.subscribe("news")
        MESSAGES.each { |message| assert_equal true, @peer.publish("news", message), message[0, 20].inspect }
        received = @peer.received

        assert_equal MESSAGES.map(&:hash), received.map { |_, message| message.hash }
        assert_equal [Encoding::BINARY], received.flatten.map(&:encoding).uniq
      end

      def test_equal_messages_all_arrive
        @peer.subscribe("news")
        10.times { @peer.publish("news", "same") }
        Array.new(20) { Thread.new { @peer.publish("news", "same") } }.each(&:join)

        assert_equal 30, @peer.received.size
      end

      def test_messages_of_one_thread_arrive_in_order
        @peer.subscribe("news")
        threads = Array.new(4) { |thread| Thread.new { 100.times { |number| @peer.publish("news", "#{thread} #{number}") } } }
        threads.each(&:join)
        received = @peer.received.map { |_, message| message.split.map(&:to_i) }

        assert_equal (0...4).to_h { |thread| [thread, (0...100).to_a] }, received.group_by(&:first).transform_values { |all| all.map(&:last) }
      end

      def test_a_thousand_channels_come_and_go
        names = Array.new(1000) { |number| "channel-#{number}" }
        names.each { |name| @peer.engine.subscribe(name, nil) }
        @peer.engine.wait_for(names.last, nil)
        @peer.publish(names.last)
        assert_equal [[names.last, "1"]], @peer.received
        names.each { |name| @peer.unsubscribe(name) }
        wait_until("the last end") do
          @peer.publish(names.last)
          @peer.received.empty?
        end
      end

      def test_threads_may_do_everything_at_once
        names = Array.new(8) { |number| "thread-#{number}" }
        threads = names.map do |name|
          Thread.new do
            20.times do |number|
              @peer.subscribe("#{name}-#{number}")
              @peer.publish("#{name}-#{number}")
              @peer.unsubscribe("#{name}-#{number - 1}")
            end
          end
        end
        threads.each(&:join)

        assert_equal names.to_h { |name| [name, (0...20).to_a] }, @peer.received.map(&:first).group_by { |name| name[/\A\w+-\d+/] }
                                                                       .transform_values { |all| all.map { |name| name[/\d+\z/].to_i } }
      end

      # --- without the broker

      def test_while_the_broker_is_away_publishing_fails_at_once_and_is_logged_once
        @peer.subscribe("news")
        @server.kill
        seconds = seconds_of { 1000.times { assert_equal false, @peer.publish("news") } }

        assert_operator seconds, :<, 3 * Fairlead::PubSub::Broker::TIMEOUT
        wait_until("a line in the log") { outages.positive? }
        assert_equal [1, 1000], [outages, @peer.engine.statistics[:lost]]
      end

      def test_when_the_broker_is_back_it_knows_what_is_wanted_by_then
        %w[news old].each { |name| @peer.subscribe(name) }
        @server.kill
        @peer.publish("news", "lost")
        @peer.subscribe("new")
        @peer.unsubscribe("old")
        @server.start
        wait_until("its return") { @output.string.include?("#{@peer.engine.name} is back after") }
        %w[old news new].each { |name| assert_equal true, @peer.publish(name, "again") }

        assert_equal [%w[news again], %w[new again]], @peer.received
        assert_match(/this process lost 1 publications/, @output.string)
        assert_operator @peer.engine.statistics[:reconnects], :>=, 1
      end

      def test_a_broker_that_is_not_there_yet_is_waited_for
        @server.kill
        assert_operator seconds_of { @peer.subscribe("news") }, :<, Fairlead::PubSub::Broker::TIMEOUT + 1
        @server.start
        wait_until("publishing") { @peer.publish("news") }

        assert_includes @peer.received, %w[news 1]
      end

      def test_a_broker_that_stands_still_holds_up_its_publishers_once
        @peer.subscribe("news")
        assert_equal true, @peer.publish("news")
        @server.pause
        threads = Array.new(5) { Thread.new { @peer.publish("news", "x" * 100) } }
        seconds = seconds_of { assert_equal [false] * 5, threads.map(&:value) }
        assert_operator seconds, :<, Fairlead::PubSub::Broker::TIMEOUT * 3
        seconds = seconds_of { 100.times { @peer.publish("news") } }
        assert_operator seconds, :<, Fairlead::PubSub::Broker::TIMEOUT
        @server.resume
        wait_until("publishing", seconds: 20) { @peer.publish("news", "again") }

        assert_includes @peer.received, %w[news again]
        assert_equal 1, outages
      ensure
        @server&.resume
      end

      def test_a_broker_that_stands_still_ends_no_wait_of_a_large_message
        assert_equal true, @peer.publish("news", "x")
        @server.pause
        assert_operator seconds_of { assert_equal false, @peer.publish("news", "x" * 900_000) }, :<, Fairlead::PubSub::Broker::TIMEOUT * 3
      ensure
        @server&.resume
      end

      def test_a_connection_that_has_broken_unnoticed_costs_no_message
        assert_equal true, @peer.publish("news")
        @server.kill
        @server.start

        assert_equal true, @peer.publish("news")
        assert_equal 0, outages
      end

      # Four threads publish numbers while the broker is killed and comes back. What was confirmed while nothing failed arrives, nothing
      # arrives twice, and each number is counted.
      def test_a_broker_that_is_killed_under_load_loses_only_what_is_counted
        listener = peer
        listener.subscribe("news")
        confirmed = Thread::Queue.new
        running = true
        threads = Array.new(4) { |thread| Thread.new { publish_numbers(thread, confirmed) { running } } }
        wait_until("messages") { listener.engine.statistics[:received] > 200 }
        @server.kill
        wait_until("losses") { @peer.engine.statistics[:lost].positive? }
        @server.start
        wait_until("its return", seconds: 20) { back?(@peer) && back?(listener) }
        before = confirmed.size
        wait_until("more messages") { confirmed.size > before + 200 }
        running = false
        attempts = threads.sum(&:value)

        assert_accounted(attempts, Array.new(confirmed.size) { confirmed.pop }, listener.received.map(&:last))
      end

      # --- processes and ends

      def test_a_fork_has_connections_of_its_own_and_leaves_those_of_its_parent_alone
        @peer.subscribe("news")
        pid = fork do
          @peer.subscribe("reply")
          @peer.publish("news", "from the child")
          @peer.publish("reply", "to itself")
          exit!(@peer.received == [["reply", "to itself"]] ? 0 : 1)
        end

        assert_equal 0, Process.wait2(pid).last.exitstatus
        @peer.publish("news", "from the parent")
        assert_equal [["news", "from the child"], ["news", "from the parent"]], @peer.received
        assert_equal 0, outages
      end

      def test_closing_ends_threads_and_connections_until_it_is_used_again
        @peer.subscribe("news")
        @peer.received
        @peer.engine.close
        wait_until("the end of its threads") { (Thread.list - @threads).none? { |thread| thread.name&.match?(/fairlead|nats/) } }
        wait_until("the end of its connections") { @server.connections.zero? }

        @peer.subscribe("news")
        @peer.publish("news", "second")
        assert_equal [%w[news second]], @peer.received
      end

      def test_closing_in_the_middle_of_many_subscriptions_ends_soon
        5.times do |round|
          3_000.times { |number| @peer.engine.subscribe("#{round}-#{number}", nil) }
          assert Thread.new { @peer.engine.close }.join(10), "it has not closed"
        end

        @peer.subscribe("news")
        @peer.publish("news")
        assert_equal [%w[news 1]], @peer.received
      end

      private

      def peer(**options) = Peer.new(engine(**options)).tap { |peer| @peers << peer }

      def outages = @errors.string.scan("cannot be reached").size

      def back?(peer) = peer.engine.publish("return", "1")

      # Returns the number of attempts.
      def publish_numbers(thread, confirmed)
        number = 0
        while yield
          number += 1
          is_confirmed = @peer.publish("news", "#{thread} #{number}")
          confirmed << "#{thread} #{number}" if is_confirmed
          sleep(is_confirmed ? 0.001 : 0.01)
        end
        number
      end

      def assert_accounted(attempts, confirmed, received)
        counts = @peer.engine.statistics
        assert_equal received.uniq, received
        missing = confirmed - received
        warn losses(attempts, counts, missing, received - confirmed) if ENV["SHOW_LOSSES"]
        assert_operator counts[:lost], :>=, attempts - confirmed.size
        assert_operator missing.size, :<, confirmed.size / 2
      end

      def losses(attempts, counts, missing, unconfirmed)
        "#{self.class}: #{attempts} publications, #{counts[:lost]} lost, #{missing.size} confirmed but not received, " \
          "#{unconfirmed.size} not confirmed but received"
      end
    end
  end
end
