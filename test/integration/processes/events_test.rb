# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Events in the life of the processes that an application gets with Fairlead.on, and its deferred blocks and timers.
class EventsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  # Notes each event, with the process and the argument.
  NOTING = <<~RUBY
    note = ->(text) { File.write("notes", "\#{text} \#{Process.pid}\\n", mode: "a") }
    %i[boot shutdown stopped].each { |event| Fairlead.on(event) { note[event] } }
  RUBY
  WITH_WORKERS = <<~RUBY
    %i[fork before_worker_fork worker_lost supervisor_lost].each { |event| Fairlead.on(event) { |index| note["\#{event} \#{index}"] } }
  RUBY
  HELLO = "run ->(_env) { [200, {}, ['hello']] }"

  def test_a_single_process_boots_drains_and_stops
    server = serve(NOTING + HELLO)
    pid = server.serving_pids.first
    assert_equal ["boot #{pid}"], notes(server)

    assert_equal 0, server.stop.exitstatus
    assert_equal %w[boot shutdown stopped].map { |event| "#{event} #{pid}" }, notes(server)
  end

  def test_what_a_preloaded_application_asks_for_happens_in_every_worker
    server = serve(NOTING + WITH_WORKERS + HELLO, "-w", 2)
    pids = server.worker_pids
    spawner = server.spawner_pid

    assert_equal 0, server.stop.exitstatus
    %w[boot shutdown stopped].each { |event| assert_equal pids, pids_of(server, event), event }
    assert_equal pids.zip([0, 1]), fork_notes(server).sort
    assert_equal ["before_worker_fork 0 #{spawner}", "before_worker_fork 1 #{spawner}"], notes(server).grep(/before/).sort
  end

  def test_an_application_that_a_worker_loads_and_the_configuration_file_are_heard_too
    server = serve(NOTING + HELLO, "-w", 1, "--no-preload", files: { "config/fairlead.rb" => <<~RUBY })
      Fairlead.on(:boot) { File.write("notes", "file\\n", mode: "a") }
    RUBY

    assert_equal ["file", "boot #{server.worker_pids.first}"], notes(server)
  end

  def test_the_spawner_hears_of_a_lost_worker_and_the_worker_of_a_lost_supervisor
    server = serve(NOTING + WITH_WORKERS + HELLO, "-w", 1, "--preload")
    Process.kill(:KILL, server.worker_pids.first)
    wait_until("the note") { notes(server).include?("worker_lost 0 #{server.spawner_pid}") }
    survivor = wait_until("the next worker") { pids_of(server, "boot").last if pids_of(server, "boot").size == 2 }
    Process.kill(:KILL, server.pid)

    wait_until("its end") { notes(server).include?("stopped #{survivor}") }
    assert_includes notes(server), "supervisor_lost 0 #{survivor}"
  end

  def test_one_that_raises_is_logged_and_the_server_goes_on
    server = serve("Fairlead.on(:boot) { raise 'no cache' }\nFairlead.on(:shutdown) { raise 'no goodbye' }\n#{HELLO}")
    assert_equal "hello", get(server).body

    assert_equal 0, server.stop.exitstatus
    assert_match(/^boot failed: .*no cache/, server.stderr)
    assert_match(/^shutdown failed: .*no goodbye/, server.stderr)
  end

  def test_a_goodbye_that_hangs_costs_no_more_than_the_shutdown_timeout
    server = serve("Fairlead.on(:shutdown) { sleep }\n#{NOTING}#{HELLO}", "--shutdown-timeout", "0.5")
    pid = server.serving_pids.first

    assert_equal 0, server.stop.exitstatus
    assert_includes notes(server), "stopped #{pid}"
  end

  def test_a_goodbye_that_hangs_ends_when_the_server_is_to_stop_at_once
    server = serve("Fairlead.on(:shutdown) { File.write('notes', '') and sleep }\n#{HELLO}", "--shutdown-timeout", "3600")
    server.signal(:TERM)
    wait_until("the close frame") { File.exist?(server.path("notes")) }

    assert_equal 0, server.stop(:QUIT).exitstatus
  end

  def test_a_goodbye_is_waited_for_also_when_nobody_is_connected
    server = serve("Fairlead.on(:shutdown) { sleep 1.2; File.write('notes', 'done') }\n#{HELLO}")

    assert_equal 0, server.stop.exitstatus
    assert_equal ["done"], notes(server)
  end

  def test_an_embedded_server_boots_and_stops_too
    seen = Thread::Queue.new
    Fairlead.on(:boot) { seen << :boot }
    Fairlead.on(:stopped) { seen << :stopped }
    server = Fairlead::Server.new(->(_) { [200, {}, []] }, bind: "tcp://127.0.0.1:0").start
    assert_equal [:boot], [seen.pop]

    server.stop
    assert_equal [:stopped], [seen.pop]
    assert_empty seen
  end

  private

  # Process ids of an event, in order.
  def pids_of(server, event) = notes(server).filter_map { |line| Integer(line[/\A#{event} (\d+)\z/, 1] || next, 10) }.sort

  # [pid, index] of each forked worker.
  def fork_notes(server) = notes(server).filter_map { |line| line.match(/\Afork (\d+) (\d+)\z/)&.captures&.reverse&.map(&:to_i) }
end
