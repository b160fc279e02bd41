# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/restarts"

# A worker that is replaced goes on with long requests for `long_drain`. Nobody waits for it.
class LongDrainTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Restarts

  # "/NAME?FILE" waits for that file, and notes its process in the file NAME.
  APP = <<~'RUBY'
    run lambda { |env|
      name = env["PATH_INFO"].delete("/")
      File.write("inside-#{name}", Process.pid.to_s) unless name.empty?
      sleep 0.005 until env["QUERY_STRING"].empty? || File.exist?(env["QUERY_STRING"])
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  # Requests of workers that are not given more time are aborted at once.
  SHORT = %(shutdown_timeout 0\nworker_settle_time 0.2\n)

  def test_restarts_go_on_while_several_workers_have_long_requests
    server = draining(2)
    long = long_requests(server, 2)
    %w[USR1 USR2].each.with_index(1) { |signal, times| restart(server, signal, times) }

    assert_equal 2, server.worker_pids.count { |pid| long.values.include?(pid) }, "they still work"
    assert_empty server.stderr
    finish(server, long)
    wait_until("their ends") { server.worker_pids.size == 2 }
  end

  def test_at_the_end_of_the_server_they_have_the_time_of_any_other_worker
    server = draining(1)
    long = long_requests(server, 1)
    restart(server, "USR1", 1)
    server.signal(:TERM)

    assert_equal [503], long.keys.map { |client| client.answer.status }
    assert_equal 0, server.wait_exit.exitstatus
    assert_match(/did not finish within 0 s and were aborted/, server.stderr)
  end

  def test_the_first_ones_give_way_if_more_workers_would_drain_than_serve
    server = draining(1)
    first, *others = (1..3).map do |times|
      long_requests(server, 1, "go-#{times}").tap { restart(server, "USR1", times) }
    end

    assert_equal [503], first.keys.map { |client| client.answer.status }
    others.each.with_index(2) { |requests, times| finish(server, requests, "go-#{times}") }
  end

  def test_without_workers_the_previous_process_goes_on
    server = draining(0)
    long = long_requests(server, 1)
    restart(server, "USR2", 1)

    wait_until("the new process") { !long.value?(get(server).body.to_i) }
    finish(server, long)
  end

  # It sends no heartbeat meanwhile.
  def test_without_workers_the_last_hook_of_the_previous_process_may_take_longer_than_worker_timeout
    server = draining(0, <<~RUBY)
      worker_timeout 1
      after_stopped { File.exist?("go") && !File.exist?("ended") && (sleep 5; File.write("ended", "")) }
    RUBY
    long = long_requests(server, 1)
    restart(server, "USR2", 1)
    finish(server, long)

    wait_until("the end of the hook", seconds: 20) { File.exist?(server.path("ended")) }
    assert_empty server.stderr
  end

  def test_a_removed_worker_goes_on
    server = draining(2)
    long = long_requests(server, 2)
    server.signal(:TTOU)
    wait_until("one that serves") { Array.new(8) { get(server).body }.uniq.size == 1 }

    finish(server, long)
    server.wait_for_workers(1)
    assert_empty server.stderr
  end

  private

  def draining(workers, more = "")
    file = %(#{SHORT}long_drain 60\nbind "tcp://127.0.0.1:0"\n#{more})
    serve(APP, "-w", workers, "-t", 8, bind: nil, files: { "config/fairlead.rb" => file })
  end

  # One request in each of +count+ processes that had none: clients => processes. A worker that has just been asked to end may still accept.
  def long_requests(server, count, name = "go")
    busy = (@busy ||= [])
    found = {}
    wait_until("a request in each process", seconds: 20) do
      file = "#{name}-#{found.size}-#{rand(1 << 30)}"
      client = connect(server).request("GET", "/#{file}?#{name}")
      pid = wait_until("the request") { File.exist?(server.path("inside-#{file}")) && File.read(server.path("inside-#{file}")).to_i.nonzero? }
      found[client] = pid unless busy.include?(pid)
      busy << pid
      found.size == count
    end
    found
  end

  def restart(server, signal, times)
    kind = { "USR1" => "phased restart", "USR2" => "hot restart" }.fetch(signal)
    server.signal(signal.to_sym)
    wait_until("the restart", seconds: 30) { server.stdout.scan(/restart: done/).size == times }
    assert_match(/#{kind}: done/, server.stdout)
  end

  def finish(server, requests, name = "go")
    server.write(name, "")
    assert_equal requests.values.map(&:to_s), requests.keys.map { |client| client.answer.body }
  end
end
