# frozen_string_literal: true

require "test_helper"
require "support/action_cable"

# The turns of native Action Cable connections: order, other requests, and Rails' callbacks around each job.
class CableTurnsTest < Minitest::Test
  include Fairlead::Test::ActionCableServing

  parallelize_me!

  # Channels that take their time. `note` writes the start and the end of each action.
  SLOW = <<~'RUBY'
    NOTES = Queue.new

    class SlowChannel < ActionCable::Channel::Base
      periodically(:tick, every: 0.01) if ENV["TICKS"]
      def subscribed
        stream_from("slow") { |message| note("message #{message}") { transmit({ seen: message }) } }
        stream_from("paced", coder: ActiveSupport::JSON) { |message| note("paced #{message["number"]}") }
      end

      def count(data) = note("count #{data["number"]}") { sleep(0.001) }
      def wait = (sleep(0.01) until File.exist?("go"))
      def tick = note("tick #{name}")

      private

      def note(text)
        NOTES << "#{text} begins"
        yield if block_given?
        NOTES << "#{text} ends"
      end
    end

    def noted = Array.new(NOTES.size) { NOTES.shift }
  RUBY
  SLOW_ROOM = { channel: "SlowChannel" }.freeze

  def test_commands_of_one_client_run_one_at_a_time_and_in_order
    server = cable("-t", 5, code: SLOW)
    client = joined(server, to: SLOW_ROOM)
    200.times { |number| act(client, "count", to: SLOW_ROOM, number: number) }
    notes = noted(server) { |all| all.size >= 400 }

    assert_equal((0...200).flat_map { |number| ["count #{number} begins", "count #{number} ends"] }, notes)
  end

  # With other adapters, Rails gives the job of each message to the connection.
  %w[fairlead async].each do |adapter|
    define_method(:"test_messages_of_streams_do_not_run_beside_commands_with_#{adapter}") do
      server = cable("-t", 5, code: SLOW, adapter: adapter)
      client = joined(server, to: SLOW_ROOM)
      50.times do |number|
        act(client, "count", to: SLOW_ROOM, number: number)
        evaluate(server, "ActionCable.server.broadcast('slow', #{number})")
      end
      notes = noted(server) { |all| all.size >= 200 }

      notes.each_slice(2) { |first, last| assert_equal first.sub("begins", "ends"), last }
      assert_equal (0...50).map { |number| "count #{number} begins" }, notes.grep(/count.*begins/)
      assert_equal (0...50).map { |number| { "seen" => number.to_s } }, Array.new(50) { told(client) } if adapter == "fairlead"
    end
  end

  def test_a_message_does_not_overtake_earlier_ones_of_its_broadcaster
    server = cable("-t", 5, code: SLOW)
    joined(server, to: SLOW_ROOM)
    evaluate(server, "500.times { |number| ActionCable.server.broadcast('paced', { number: number }) }")

    assert_equal (0...500).to_a, noted(server) { |all| all.size >= 1000 }.grep(/begins/) { |note| note[/\d+/].to_i }
  end

  def test_timers_run_in_turn_and_skip_runs_while_the_client_is_busy
    server = cable("-t", 5, code: SLOW, environment: { "TICKS" => "1" })
    ann, = %w[ann bob].map { |name| joined(server, name, to: SLOW_ROOM) }
    noted(server) { |all| all.grep(/tick ann ends/).size >= 3 }
    act(ann, "wait", to: SLOW_ROOM)
    wait_for_log(server, /SlowChannel#wait/)
    noted(server)
    during = noted(server) { |all| all.grep(/tick bob/).size >= 10 }
    File.write(server.path("go"), "")
    command(ann, "unsubscribe", SLOW_ROOM)
    wait_for_log(server, /Unsubscribing from channel/)
    rest = noted(server) { |all| all.grep(/tick bob/).size >= 10 }

    assert_empty during.grep(/ann/)
    assert_operator rest.grep(/tick ann begins/).size, :<=, 1
  end

  # An action that sleeps holds a thread, and no request waits for it: another thread takes over.
  def test_pages_do_not_wait_for_a_sleeping_action
    server = cable("-t", 2, code: SLOW)
    client = joined(server, to: SLOW_ROOM)
    act(client, "wait", to: SLOW_ROOM)
    wait_for_log(server, /SlowChannel#wait/)
    other = joined(server, "bob")
    act(other, "answer", text: "x")

    assert_equal(["page"] * 20, Array.new(20) { get(server).body })
    assert_equal({ "answer" => "x" }, told(other))
    File.write(server.path("go"), "")
  end

  # Rails hangs its executor and Active Record's connections on them.
  def test_every_job_runs_inside_the_work_callbacks
    code = SLOW + <<~'RUBY'
      WORKED = Queue.new
      ActionCable::Server::Worker.set_callback(:work, :around) do |worker, block|
        connection = worker.connection
        WORKED << (connection.respond_to?(:connection) ? connection.connection : connection).name.to_s # Rails 8.2 gives its socket
        block.call
      ensure
        WORKED << "done"
      end
    RUBY
    server = cable(code: code)
    client = joined(server, to: SLOW_ROOM)
    act(client, "count", to: SLOW_ROOM, number: 1)
    evaluate(server, "ActionCable.server.broadcast('slow', 'x')")
    assert_equal({ "seen" => '"x"' }, told(client))
    client.close(1000)

    # The open, when it has no name yet, the subscription, the command, the message and the close.
    expected = ["", "done"] + (%w[ann done] * 4)
    wait_until("the end") { evaluate(server, "WORKED.size") == "10" }
    assert_equal expected.inspect, evaluate(server, "Array.new(10) { WORKED.shift }")
  end

  def test_an_exception_is_logged_and_the_connection_stays
    server = cable
    client = joined(server)
    client.send_text("{")
    client.send_text("[1]")
    command(client, "fly")
    command(client, "subscribe", "x")
    command(client, "message", data: "{")
    act(client, "vanish")
    act(client, "answer", text: "still here")

    assert_equal({ "answer" => "still here" }, told(client))
    # Rails 8.2 has other words.
    [/There was an exception|Could not handle incoming message: "\{"/, /Received unrecognized command/,
     /Could not (execute command|handle incoming message)/, /Unable to process RoomChannel#vanish/].each { |line| assert_match line, log(server) }
    assert_empty server.stderr
  end

  # The handlers and jobs of a connection that has ended.
  def test_jobs_of_an_ended_connection_run_no_more
    server = cable(code: SLOW)
    client = joined(server, to: SLOW_ROOM)
    act(client, "wait", to: SLOW_ROOM)
    wait_for_log(server, /SlowChannel#wait/)
    3.times { act(client, "count", to: SLOW_ROOM, number: 1) }
    client.close(1000)
    File.write(server.path("go"), "")
    wait_for_log(server, /Finished/)
    evaluate(server, "ActionCable.server.broadcast('slow', 'late')")

    assert_equal "page", get(server).body
    refute_includes noted(server), "message late begins"
  end

  private

  # Returns the notes so far, or those until the block is true of them.
  def noted(server)
    all = []
    wait_until("notes") do
      all.concat(evaluate(server, "noted").scan(/"(.*?)"/).flatten)
      !block_given? || yield(all)
    end
    all
  end
end
