# frozen_string_literal: true

require "test_helper"
require "support/restarts"
require "support/web_socket"

# Nobody has asked for an automatic refork, so it costs no request and no client.
class AutomaticReforkTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Restarts
  include Fairlead::Test::WebSockets

  Expired = Fairlead::Test::Waiting::Expired

  # The response to "/wait" begins at once, and ends when there is a file.
  APP = <<~'RUBY'
    class Waiting
      def each
        yield "#{Process.pid} "
        sleep 0.005 until File.exist?("go")
        yield "done"
      end
    end

    class Plain
      def on_message(client, message) = client.write("#{message} #{Process.pid}")
    end

    class Refusing < Plain
      def on_handover(_client) = nil
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/wait" then [200, {}, Waiting.new]
      when "/full"
        Thread.new { sleep 0.005 until File.exist?("later"); File.write("job", "done") }
        Thread.singleton_class.prepend(Module.new { def new(...) = raise(ThreadError, "can't create Thread: no room") })
        [200, {}, Waiting.new]
      when "/hang" then sleep
      when "/job"
        Thread.new { sleep 0.005 until File.exist?("go"); File.write("job", "done") }
        [200, {}, [Process.pid.to_s]]
      when "/defer"
        Thread.new { sleep 0.005 until File.exist?("go"); Fairlead.defer { File.write("deferred", Process.pid.to_s) } }
        [200, {}, [Process.pid.to_s]]
      when "/timer"
        Fairlead.run_after(3) { File.write("timer", Process.pid.to_s) }
        [200, {}, [Process.pid.to_s]]
      when "/stay"
        at_exit { sleep }
        [200, {}, [Process.pid.to_s]]
      when "/Plain", "/Refusing"
        env["rack.upgrade"] = Object.const_get(env["PATH_INFO"].delete("/")).new
        [200, {}, []]
      else [200, {}, [Process.pid.to_s]]
      end
    }
  RUBY

  # Without a waiting room, the worker of a connection runs its requests, also on a busy machine.
  OPTIONS = ["-w", 2, "--refork-after=30", "--drain-spread", 0, "--shutdown-timeout", 0, "--no-waiting-room"].freeze

  # One of 8 workers gets at least 210 of 1,680 requests.
  def test_it_begins_by_itself_after_the_first_requests
    server = serve(APP, "-w", 8, "-e", "production")
    requests = "GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 41
    sockets = Array.new(40) { TCPSocket.new("127.0.0.1", server.port) }
    sockets.each { |socket| socket.write(requests, "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n") }
    responses = sockets.sum { |socket| socket.read.scan("HTTP/1.1 200").size }
    restarted(server, "refork")

    assert_equal 1680, responses
  ensure
    sockets&.each(&:close)
  end

  def test_a_long_response_of_a_replaced_worker_goes_on
    server = serve(APP, *OPTIONS)
    response, pid = begin_to_wait(server)
    ask(server, server.worker_pids.find { |other| other != pid })
    restarted(server, "refork")

    finish(server, response, pid)
  end

  def test_a_job_in_a_thread_of_a_replaced_worker_goes_on
    server = serve(APP, *OPTIONS)
    pid = replaced_after(server, "/job")
    File.write(server.path("go"), "")
    wait_until("the end of the worker") { !server.worker_pids.include?(pid) }

    assert_equal "done", File.read(server.path("job"))
  end

  def test_a_block_that_such_a_job_defers_runs
    server = serve(APP, *OPTIONS)
    pid = replaced_after(server, "/defer")
    File.write(server.path("go"), "")
    wait_until("the end of the worker") { !server.worker_pids.include?(pid) }

    assert_equal pid.to_s, File.read(server.path("deferred"))
  end

  def test_a_timer_of_a_replaced_worker_runs
    server = serve(APP, *OPTIONS)
    pid = replaced_after(server, "/timer")
    wait_until("the end of the worker") { !server.worker_pids.include?(pid) }

    assert_equal pid.to_s, File.read(server.path("timer"))
  end

  def test_a_replaced_worker_that_hangs_is_killed
    server = serve(APP, *OPTIONS, "--worker-timeout", 2)
    _, pid = begin_to_wait(server)
    ask(server, server.worker_pids.find { |other| other != pid })
    restarted(server, "refork")
    Process.kill(:STOP, pid)

    server.wait_for_output(/worker \d \(pid #{pid}\) has shown no sign of life for 2 s; killing it/)
    wait_until("the end of the worker") { !server.worker_pids.include?(pid) }
  end

  def test_a_replaced_worker_without_room_for_a_thread_finishes_its_requests_and_jobs
    server = serve(APP, *OPTIONS, "--worker-timeout", 2)
    response, pid = begin_to_wait(server, "/full")
    ask(server, server.worker_pids.find { |other| other != pid })
    restarted(server, "refork")
    server.wait_for_output(/no thread can wait for the requests/)
    %w[go later].each do |file|
      silent = monotonic + 4
      wait_until("more than its time without a heartbeat") { monotonic > silent }
      File.write(server.path(file), "")
    end

    assert_equal "done", response.value
    wait_until("the end of the worker") { !server.worker_pids.include?(pid) }
    assert_path_exists server.path("job")
    refute_match(/no sign of life/, server.stderr)
  end

  def test_a_worker_that_hangs_before_it_becomes_the_spawner_is_replaced
    server = serve(APP, *OPTIONS, "--worker-timeout", 2)
    _, pid = begin_to_wait(server)
    ask(server, pid)
    server.wait_for_output(/refork: worker \d \(pid #{pid}\) becomes the spawner/)
    Process.kill(:STOP, pid)

    server.wait_for_output(/refork: failed, generation 1 goes on serving: it showed no sign of life for 2 s/)
    wait_until("another worker") { server.worker_pids.size == 2 && !server.worker_pids.include?(pid) }
  end

  # It has no requests left for which it would need its time.
  def test_a_replaced_worker_that_does_not_exit_is_killed
    server = serve(APP, *OPTIONS)
    pid = replaced_after(server, "/stay")
    wait_until("the end of the worker", seconds: 30) { !server.worker_pids.include?(pid) }

    assert_match(/worker \d \(pid #{pid}\) did not end in time; killing it/, server.stderr)
  end

  def test_a_worker_becomes_the_spawner_after_its_last_response
    server = serve(APP, *OPTIONS)
    response, pid = begin_to_wait(server)
    ask(server, pid)
    server.wait_for_output(/becomes the spawner/)
    File.write(server.path("go"), "")
    restarted(server, "refork")

    assert_equal "done", response.value

    assert_equal pid, server.spawner_pid
  end

  def test_a_worker_that_waits_for_its_last_response_is_no_obstacle_for_a_restart
    server = serve(APP, *OPTIONS, "--shutdown-timeout", 30)
    response, pid = begin_to_wait(server)
    ask(server, pid)
    server.wait_for_output(/becomes the spawner/)
    server.signal(:USR1)
    server.wait_for_output(/phased restart: loading/)
    finish(server, response, pid)
    restarted(server)

    assert_match(/refork: failed, .*another restart was asked for/, server.stderr)
  end

  # The other workers have to be replaced when all their threads hang.
  def test_a_worker_that_waits_for_its_last_response_is_no_obstacle_for_the_replacement_of_others
    server = serve(APP, *OPTIONS, "--shutdown-timeout", 30, "--request-timeout", 0.2, "--stuck-after", 0.2)
    response, pid = begin_to_wait(server)
    ask(server, pid)
    server.wait_for_output(/becomes the spawner/)
    assert_equal "504", Net::HTTP.get_response(URI(server.url("/hang"))).code
    server.wait_for_output(/recycling worker/)

    finish(server, response, pid)
    assert_match(/refork: failed, .*a worker has to be replaced before/, server.stderr)
  end

  # A restart that the user has asked for ends it at last.
  def test_the_next_restart_gives_it_no_more_time
    server = serve(APP, *OPTIONS)
    _, pid = begin_to_wait(server)
    ask(server, server.worker_pids.find { |other| other != pid })
    restarted(server, "refork")
    server.signal(:USR1)
    restarted(server)

    wait_until("the end of the worker") { !server.worker_pids.include?(pid) }
  end

  # A client that cannot move and is open when it begins keeps it from beginning. These come later, or refuse to move.
  def test_clients_that_stay_are_left_alone
    server = serve(APP, *OPTIONS, files: { "config/fairlead.rb" => "before_worker_boot { sleep 0.5 }\n" })
    clients = [web_socket(server, "/Refusing")]
    ask(server, server.worker_pids.first)
    server.wait_for_output(/becomes the spawner/)
    spawner = server.stdout[/pid (\d+)\) becomes the spawner/, 1]
    clients += Array.new(6) { web_socket(server, "/Plain") }
    there, others = clients.partition { |client| worker_of(client) == spawner }
    served = others.to_h { |client| [client, worker_of(client)] }
    there.each(&:close)
    restarted(server, "refork")

    served.each { |client, pid| assert_equal pid, worker_of(client) }
  end

  # The next one comes after eight times as many requests.
  def test_one_that_fails_is_tried_again
    server = serve(APP, *OPTIONS, files: { "config/fairlead.rb" => <<~RUBY })
      before_worker_boot { sleep if File.exist?("slow") }
    RUBY
    File.write(server.path("slow"), "")
    ask(server, server.worker_pids.first)
    substitute = wait_until("the new worker") { (server.worker_pids - pids_of_booted(server)).first }
    File.delete(server.path("slow"))
    Process.kill(:KILL, substitute)
    server.wait_for_output(/refork: failed/)
    8.times { ask(server, server.worker_pids.first) }

    restarted(server, "refork")
  end

  # The new workers need slots while the old ones end.
  def test_it_needs_slots_for_more_workers
    server = serve(APP, "-w", 63, "-t", "1:1", "-e", "production", "--refork-after=30", "--no-waiting-room")
    ask(server, server.worker_pids.first)
    assert_raises(Expired) { wait_until("a refork", seconds: 3) { server.stdout.include?("becomes the spawner") } }
  end

  # Others connect while the clients of a worker move, and a client without a place would be closed.
  def test_it_waits_for_room_for_the_clients_of_a_worker
    server = serve(APP, *OPTIONS, "--max-connections", 6)
    connections = Array.new(10) { Net::HTTP.start("127.0.0.1", server.port, max_retries: 0) }
    40.times { connections.each { |connection| assert_equal "200", connection.get("/").code } }
    assert_raises(Expired) { wait_until("a refork", seconds: 3) { server.stdout.include?("becomes the spawner") } }

    connections.pop(4).each(&:finish)
    restarted(server, "refork")
    connections.each { |connection| assert_equal "200", connection.get("/").code }
  ensure
    connections&.each { |connection| connection.finish if connection.started? }
  end

  private

  # Requests the path, and has the other worker become the spawner. Returns the worker with the request, which is replaced.
  def replaced_after(server, path)
    pid = Integer(Net::HTTP.get(URI(server.url(path))), 10)
    ask(server, server.worker_pids.find { |other| other != pid })
    restarted(server, "refork")
    pid
  end

  def pids_of_booted(server) = server.stdout.scan(/worker \d booted \(pid (\d+)/).flatten.map { |pid| Integer(pid, 10) }

  # The process that answers the client.
  def worker_of(client)
    client.send_text("hello")
    client.receive.last[/\Ahello (\d+)\z/, 1]
  end

  # Returns a thread that waits for the rest of the response, and the process that sends it.
  def begin_to_wait(server, path = "/wait")
    parts = Queue.new
    response = Thread.new do
      http = Net::HTTP.new("127.0.0.1", server.port)
      http.max_retries = 0
      http.start { http.request_get(path) { |answer| answer.read_body { |part| parts << part } } }
      parts.size.positive? ? parts.pop : "nothing"
    end
    response.report_on_exception = false
    [response, Integer(parts.pop, 10)]
  end

  def finish(server, response, pid)
    File.write(server.path("go"), "")

    assert_equal "done", response.value
    wait_until("the end of the worker") { !server.worker_pids.include?(pid) }
    refute_match(/abort/, server.stderr)
  end

  # Makes so many requests to this worker that a refork is due. Connections are spread over the workers.
  def ask(server, pid)
    connections = []
    wait_until("a connection to the worker") do
      connections << Net::HTTP.start("127.0.0.1", server.port)
      connections.last.get("/").body == pid.to_s
    end
    40.times { connections.last.get("/") }
  ensure
    connections.each(&:finish)
  end
end
