# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Limits of subscriptions, and of messages that wait for their blocks: the clients that are closed, and the ones that are
# not.
class SubscriptionLimitsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  # Subscribes with a block that waits for $go.
  WAITING = "client.subscribe('a') { |_, message| sleep 0.01 until $go; client.write(message) }"

  def test_the_application_is_to_blame_if_its_blocks_do_not_keep_up
    server = pushing(CONSOLE, "-t", 2, "--client-pending-messages", 10)
    client = web_socket(server)
    told(client, WAITING)
    requested(server, publish(30))

    assert_equal [1013, "the application does not keep up with messages for its blocks"], client.receive_close
    wait_until("the line in the log") { server.stderr.include?("the application does not keep up with messages for its blocks (close code 1013)") }
  end

  def test_what_waits_within_the_limit_runs
    server = pushing(CONSOLE, "-t", 2, "--client-pending-messages", 6_000)
    client = web_socket(server)
    told(client, WAITING)
    requested(server, publish(5_000))
    requested(server, "$go = true")

    client.wait_for("the last") { client.messages.size == 5_000 }
    assert_equal Array.new(5_000, &:to_s), client.messages.map(&:last)
  end

  def test_what_is_dropped_because_of_the_application_is_logged_once
    server = pushing(CONSOLE, "-t", 2, "--client-pending-messages", 10, "--client-overflow", "drop")
    client = web_socket(server)
    told(client, WAITING)
    requested(server, publish(30))
    wait_until("the line in the log") { server.stderr.include?("dropping messages for a WebSocket of") }
    requested(server, "$go = true")
    client.wait_for("the last") { client.messages.size >= 10 }

    assert_equal Array.new(10, &:to_s), client.messages.first(10).map(&:last)
    assert_logged(server, 1)
  end

  def test_a_process_that_does_not_keep_up_is_logged_once
    server = pushing(CONSOLE, "-t", 2)
    requested(server, "$turns = Thread::Queue.new; $ran = 0; Fairlead.subscribe('a') { $turns.pop; $ran += 1 }")
    requested(server, publish_and_wait(66_000))
    5.times { |number| requested(server, "$turns << 1; sleep 0.01 until $ran > #{number}; #{publish_and_wait(3)}") }
    requested(server, "70_000.times { $turns << 1 }")

    assert_logged(server, 1)
    assert_match(/the application does not keep up with messages of a subscription of the process/, server.stderr)
  end

  # --- resubscribing to a name while messages wait: with one thread, until this callback has returned

  def test_messages_that_wait_for_a_block_run_the_one_that_replaces_it
    client = web_socket(pushing(CONSOLE, "-t", 1))
    told(client, "client.subscribe('a') { |_, message| client.write('old ' + message) }; #{publish_and_wait(3)}; " \
                 "client.subscribe('a') { |_, message| client.write('new ' + message) }")
    client.wait_for("the messages") { client.messages.size >= 3 }

    assert_equal ["new 0", "new 1", "new 2"], client.messages.map(&:last)
    told(client, "client.unsubscribe('a')")
    told(client, "client.publish('a', 'late')")
    assert_equal %w[end], (told(client, "client.write('end')") && client.messages.drop(3).map(&:last))
  end

  def test_messages_that_wait_for_a_block_run_it_although_the_client_gets_later_ones_itself
    client = web_socket(pushing(CONSOLE, "-t", 1))
    told(client, "client.subscribe('a') { |_, message| client.write('old ' + message) }; #{publish_and_wait(3)}; client.subscribe('a')")
    client.wait_for("the messages") { client.messages.size >= 3 }

    assert_equal ["old 0", "old 1", "old 2"], client.messages.map(&:last)
  end

  def test_messages_that_wait_for_a_block_of_the_process_run_the_one_that_replaces_it
    server = pushing(CONSOLE, "-t", 1)
    requested(server, "$seen = []; Fairlead.subscribe('a') { |_, message| $seen << 'old ' + message }; #{publish_and_wait(3)}; " \
                      "Fairlead.subscribe('a') { |_, message| $seen << 'new ' + message }")

    wait_until("the messages") { requested(server, "$seen.size") == "3" }
    assert_equal '["new 0", "new 1", "new 2"]', requested(server, "$seen")
  end

  # --- numbers of subscriptions

  def test_a_client_has_so_many_subscriptions_and_no_more
    server = pushing(CONSOLE, "--max-subscriptions", 3)
    client = web_socket(server)
    assert_equal '["0", "1", "2", nil, nil]', told(client, "Array.new(5) { |number| client.subscribe(number.to_s) }")
    assert_equal '["1", true, "4"]', told(client, "[client.subscribe('1') { }, client.unsubscribe('0'), client.subscribe('4')]")
    assert_equal '"x"', told(web_socket(server), "client.subscribe('x')")
    assert_logged(server, 1)
    assert_match(/refused a subscription of a WebSocket of 127.0.0.1:\d+: max_subscriptions is reached/, server.stderr)
  end

  def test_a_process_has_so_many_subscriptions_of_clients
    server = pushing(CONSOLE, "--max-subscriptions-total", 4)
    first, second = Array.new(2) { web_socket(server) }
    told(first, "3.times { |number| client.subscribe(number.to_s) }")
    assert_equal '["a", nil]', told(second, "%w[a b].map { |name| client.subscribe(name) }")
    assert_equal '"own"', requested(server, "Fairlead.subscribe('own') { }")
    first.drop
    wait_until("room") { told(second, "client.subscribe('c')") == '"c"' }
  end

  def test_a_process_has_so_many_patterns
    server = pushing(CONSOLE, "--max-patterns", 2)
    client = web_socket(server)
    assert_equal '["a*", "b.>"]', told(client, "[client.subscribe('a*', true), client.subscribe('b.>', match: :subject)]")
    assert_equal '[nil, "c"]', told(client, "%w[c* c].map { |name| client.subscribe(name, true) }")
    assert_equal '["a*", nil]', told(web_socket(server), "%w[a* d*].map { |name| client.subscribe(name, true) }")
  end

  # --- choice of the client to close when a total is used up

  def test_clients_of_one_address_do_not_use_up_the_subscriptions_of_all
    server = shared("--max-subscriptions-total", 12)
    first, second = Array.new(2) { client_of(server, "10.0.0.1") }
    told(first, "7.times { |number| client.subscribe(number.to_s) }")
    told(second, "5.times { |number| client.subscribe(number.to_s) }")
    other = client_of(server, "10.0.0.2")

    assert_equal '["a", "b", "c"]', told(other, "%w[a b c].map { |name| client.subscribe(name) }")
    assert_equal [1013, "max_subscriptions_total is reached, and the client's address has the most subscriptions"], first.receive_close
    assert_equal '"5"', told(second, "client.subscribe('5')")
    told_of(server, /closed a WebSocket of 10.0.0.1:\d+: max_subscriptions_total is reached, .* \(close code 1013\)/)
  end

  def test_clients_of_one_address_do_not_use_up_the_patterns_of_all
    server = shared("--max-patterns", 6)
    crowd = Array.new(3) { client_of(server, "10.0.0.1") }
    crowd.each_with_index { |client, own| told(client, "2.times { |number| client.subscribe(\"#{own}\#{number}*\", true) }") }
    other = client_of(server, "10.0.0.2")

    assert_equal '["a*", "b*", nil]', told(other, "%w[a* b* c*].map { |name| client.subscribe(name, true) }")
    told_of(server, /max_patterns is reached, and the client's address has the most patterns/)
    told_of(server, /refused a subscription of a WebSocket of 10.0.0.2:\d+: max_patterns is reached; 10.0.0.1 has the most, 4$/)
    assert_equal '"c"', told(other, "client.subscribe('c')")
  end

  def test_patterns_that_many_share_count_for_one_of_them
    server = shared("--max-patterns", 3)
    crowd = Array.new(5) { client_of(server, "10.0.0.1") }
    crowd.each { |client| told(client, "%w[a* b*].map { |name| client.subscribe(name, true) }") }
    other = client_of(server, "10.0.0.2")

    assert_equal '["c*", nil]', told(other, "%w[c* d*].map { |name| client.subscribe(name, true) }")
    crowd.each { |client| assert_equal "1", told(client, "1") }
  end

  def test_clients_that_share_an_address_do_not_give_way_to_each_other
    server = pushing(CONSOLE, "--max-subscriptions-total", 9)
    first, second = Array.new(2) { web_socket(server) }
    told(first, "9.times { |number| client.subscribe(number.to_s) }")

    assert_equal "nil", told(second, "client.subscribe('a')")
    assert_equal "1", told(first, "1")
  end

  def test_a_refusal_is_logged_again_after_the_client_was_below_its_limit
    server = pushing(CONSOLE, "--max-subscriptions", 2)
    client = web_socket(server)
    told(client, "4.times { |number| client.subscribe(number.to_s) }")
    told(client, "client.unsubscribe('0'); client.subscribe('4'); 3.times { |number| client.subscribe(number.to_s) }")

    assert_logged(server, 2)
  end

  def test_subscribing_costs_the_same_however_many_subscriptions_a_client_has
    server = pushing(CONSOLE, "--max-subscriptions", 0)
    few, many = [4_000, 40_000].map do |count|
      Float(told(web_socket(server), <<~RUBY, seconds: 60))
        clock = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) }
        before = clock.call
        #{count}.times { |number| client.subscribe(format("#{count}/%06d", number)) }
        clock.call - before
      RUBY
    end

    assert_operator many / few, :<, 30 # 10 for ten times as many; 100 if each one searches all others
  end

  private

  # Starts a server that trusts its clients' statements about their addresses.
  def shared(*arguments) = pushing(CONSOLE, *arguments, "--trusted-proxies", "127.0.0.1")

  def client_of(server, address) = web_socket(server, headers: { "x-forwarded-for" => address })

  def told_of(server, line) = wait_until("#{line.inspect} in the log") { server.stderr.match?(line) }

  def publish(count) = "#{count}.times { |number| Fairlead.publish('a', number.to_s) }"

  # Waits until the dispatcher has delivered all messages.
  def publish_and_wait(count)
    "delivered = -> { Fairlead.stats.dig(:engines, 0, :delivered) }; before = delivered.call; #{publish(count)}; " \
      "sleep 0.01 until delivered.call >= before + #{count}"
  end
end
