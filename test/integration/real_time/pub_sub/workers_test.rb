# frozen_string_literal: true

require "test_helper"
require "support/processes"
require "support/real_time"

# Many clients over several workers: every message once, in its sender's order, of any size, also when a worker dies.
class PubSubWorkersTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Processes

  CHAT = <<~RUBY
    def on_open(client) = (client.subscribe("all"); client.write(Process.pid))
    def on_message(client, data) = client.publish("all", data)
  RUBY

  def test_every_client_gets_every_message_once_and_in_the_order_of_its_sender
    [2, 4].each do |workers|
      pool = chat(pushing(CHAT, "-w", workers, "-t", 2, "--client-pending-bytes", "8m"), 200)
      senders = pool.first(4)
      senders.each_with_index { |client, sender| 50.times { |number| client.send_text("#{sender} #{number}") } }
      received = pool.receive_all(200)

      by_sender = received.map { |texts| texts.map { |text| text.split.map(&:to_i) }.group_by(&:first).transform_values { |all| all.map(&:last) } }
      assert_equal [(0...4).to_h { |sender| [sender, (0...50).to_a] }], by_sender.map { |all| all.sort.to_h }.uniq
      pool.drop
    end
  end

  SIZES = [0, 1, 125, 126, 65_535, 65_536, 200_000, 1_000_000, 5 * 1024 * 1024].freeze

  def test_messages_of_every_size_arrive_whole_in_every_worker
    server = pushing(CHAT, "-w", 2, "-t", 2, "--client-pending-bytes", "16m", "--message-max-bytes", "16m")
    pool = chat(server, 12)
    SIZES.each do |size|
      requested(server, "Fairlead.publish('all', ('0123456789' * #{(size / 10) + 1})[0, #{size}])")
      received = pool.receive_all(1).flatten

      assert_equal [("0123456789" * ((size / 10) + 1))[0, size]], received.uniq, size.to_s
    end
    pool.first.send_text("y" * SIZES.last)
    assert_equal [SIZES.last], pool.receive_all(1).flatten.map(&:size).uniq
  end

  def test_small_messages_do_not_overtake_large_ones
    server = pushing(CHAT, "-w", 2, "-t", 2, "--client-pending-bytes", "64m")
    pool = chat(server, 6)
    requested(server, "20.times { |n| Fairlead.publish('all', n.to_s + (n.even? ? ' ' * 500_000 : '')) }")

    assert_equal [(0...20).to_a], pool.receive_all(20).map { |texts| texts.map(&:to_i) }.uniq
  end

  def test_nothing_is_lost_for_others_when_a_worker_is_killed
    server = pushing(CHAT, "-w", 3, "-t", 2, "--client-pending-bytes", "8m")
    pool = chat(server, 60)
    victim, *others = @pids.keys
    survivors = Fairlead::Test::WebSocket::Pool.new(others.flat_map { |pid| @pids[pid] })
    sender = survivors.first
    300.times do |number|
      sender.send_text(number.to_s)
      Process.kill(:KILL, victim) if number == 150
    end

    assert_equal [(0...300).map(&:to_s)], survivors.receive_all(300).uniq
    wait_until("the worker to be replaced") { server.worker_pids.size == 3 && !server.worker_pids.include?(victim) }
    assert @pids[victim].all?(&:ended?)
    again = chat(server, 30)
    sender.send_text("again")
    assert_equal ["again"], (again.receive_all(1) + survivors.receive_all(1)).flatten.uniq
  ensure
    [pool, again].compact.each(&:drop)
  end

  # Messages without room in its mailbox are lost for this worker alone, and the publisher is informed.
  def test_a_worker_that_stands_still_does_not_hold_up_the_others
    server = pushing(CHAT, "-w", 2, "-t", 2, "--client-pending-bytes", "100m")
    pool = chat(server, 20)
    stopped, awake = @pids.keys
    Process.kill(:STOP, stopped)
    wait_until("the worker to stop") { state(stopped) == "T" }
    publisher = Thread.new do
      requested(server, "Thread.new { Notes.add(Array.new(1500) { |n| Fairlead.publish('all', n.to_s.ljust(10_000)) }.last) }")
    end
    # The system may wake the stopped worker for the new connection; the next one wakes the other worker.
    wait_until("the request to be served") { connect(server) && publisher.join(0.1) }
    received = Fairlead::Test::WebSocket::Pool.new(@pids[awake]).receive_all(1500)

    assert_equal [(0...1500).to_a], received.map { |texts| texts.map(&:to_i) }.uniq
    assert_equal ["false"], wait_for_notes(server, 1)
    Process.kill(:CONT, stopped)
    wait_until("messages to its clients") do
      @pids[awake].first.send_text("again")
      pool.each(&:take_in)
      @pids[stopped].all? { |client| client.messages.include?([:text, "again"]) }
    end
  end

  def test_a_hundred_clients_come_and_go_while_messages_pass
    server = pushing(CHAT, "-w", 2, "-t", 2)
    pool = chat(server, 20)
    sender = pool.first
    comers = Thread.new { 100.times { web_socket(server).drop(reset: true) } }
    200.times { |number| sender.send_text(number.to_s) }

    assert_equal [(0...200).map(&:to_s)], pool.receive_all(200).uniq
    comers.join
    assert_served(server, sender)
    assert_empty server.stderr
  end

  # Workers that were forked earlier do not have its mailbox yet.
  def test_a_worker_that_was_added_hears_the_others_and_they_hear_it
    server = pushing(CHAT, "-w", 2, "-t", 2)
    old = chat(server, 20)
    server.signal(:TTIN)
    added = (server.wait_for_workers(3) - @pids.keys).first
    wait_until("the new worker to serve") { server.stdout.include?("(pid #{added},") }
    pool = chat_in(server, added, 20)
    old.first.send_text("hello")
    assert_equal ["hello"], (old.receive_all(1) + pool.receive_all(1)).flatten.uniq
    @pids[added].first.send_text("and you")

    assert_equal ["and you"], (old.receive_all(1) + pool.receive_all(1)).flatten.uniq
  ensure
    [old, pool].compact.each(&:drop)
  end

  def test_a_worker_that_is_no_longer_wanted_lets_its_clients_go_and_the_others_go_on
    server = pushing(CHAT, "-w", 2, "-t", 2)
    pool = chat(server, 20)
    server.signal(:TTOU)
    server.wait_for_workers(1)
    gone = @pids.except(*server.worker_pids).values.flatten
    stay = @pids.values_at(*server.worker_pids).flatten

    assert_equal [1012], gone.map { |client| client.receive_close.first }.uniq
    stay.first.send_text("still here")
    assert_equal ["still here"], stay.map { |client| client.receive.last }.uniq
  ensure
    pool&.drop
  end

  private

  # Returns that many clients, each of which has reported its worker; @pids has them by worker. They are in more than one
  # worker: on a busy machine the first may have accepted all of them before the others have started.
  def chat(server, count)
    wait_until("clients in more than one worker") do
      pool = Fairlead::Test::WebSocket::Pool.connect(count, "127.0.0.1", server.port)
      pool.each { |client| adopt_web_socket(client) }
      workers = pool.receive_all(1).flatten.map(&:to_i)
      @pids = pool.zip(workers).group_by(&:last).transform_values { |pairs| pairs.map(&:first) }
      @pids.size > 1 ? pool : pool.drop && nil
    end
  end

  # The same, with at least one client in this worker.
  def chat_in(server, pid, count)
    wait_until("a client in worker #{pid}") do
      pool = chat(server, count)
      @pids.key?(pid) ? pool : pool.drop && nil
    end
  end
end
