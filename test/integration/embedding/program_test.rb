# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"
require "support/processes"
require "logger"

# A program with servers inside: they start and stop without an effect on the rest of the program.
class ProgramTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  # Has a signal handler, a thread and a child of its own, and serves on two addresses.
  PROGRAM = <<~RUBY
    require "fairlead"
    $stdout.sync = true
    trap("TERM") { $stdout.write("my own TERM\\n") and exit!(7) }
    servers = %w[front back].map do |name|
      Fairlead::Server.new(->(env) { [200, {}, ["\#{name} \#{Process.wait2(fork { exit!(3) }).last.exitstatus}"]] },
                           bind: "tcp://127.0.0.1:0", threads: [0, 3]).start
    end
    servers.each { |server| puts "listening on \#{server.addresses.first}" }
    puts "fairlead inside ready"
    sleep
  RUBY

  # The main thread serves, too, and uses the heap between two waits of more than a second.
  SERVES_ITSELF = <<~'RUBY'
    require "fairlead"
    kept = []
    text = ->(number) { "#{number} " * 50 }
    app = lambda do |_|
      kept << Array.new(20_000, &text) if Thread.current == Thread.main
      sleep 0.2
      [200, {}, []]
    end
    server = Fairlead::Server.new(app, bind: "tcp://127.0.0.1:0", threads: [1, 3]).start
    Thread.new do
      2.times do
        sleep 1.5
        clients = Array.new(6) { TCPSocket.new("127.0.0.1", URI(server.addresses.first).port) }
        clients.each { |client| client.write("GET / HTTP/1.0\r\n\r\n") }.each(&:read)
      end
      sleep 1.5
      exit!(kept.any? && kept.all?(Array.new(20_000, &text)))
    end
    ObjectSpace.each_object(Fairlead::Engine).first.instance_variable_get(:@native).run
  RUBY

  # Then the C library takes all that is free below the stack of the main thread for a part of it.
  def test_the_heap_of_a_program_whose_main_thread_serves_with_a_stack_without_a_limit
    unlimited = Process::RLIM_INFINITY
    skip "the stack is limited" if Process.getrlimit(:STACK).last != unlimited
    command = [RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-r", "socket", "-r", "uri", "-e", SERVES_ITSELF]

    assert system(*command, rlimit_stack: unlimited, %i[out err] => File::NULL)
  end

  def test_servers_one_after_another_leave_no_thread_and_no_descriptor_behind
    serve_and_stop(0)
    before = [Thread.list.size, threads, descriptors(Process.pid)]
    10.times { |n| serve_and_stop(n) }

    wait_until("the counts from before: #{before}") do
      GC.start
      [Thread.list.size, threads, descriptors(Process.pid)].zip(before).all? { |now, then_| now <= then_ }
    end
  end

  def test_the_descriptors_of_a_server_that_has_ended_do_not_wait_for_the_collector
    GC.disable
    [{}, { logger: Logger.new(File::NULL), log_requests: true }].each do |options|
      serve_and_stop(0, **options)
      before = descriptors(Process.pid)
      5.times { |n| serve_and_stop(n, **options) }

      wait_for_closed_descriptors(Process.pid, before)
    end
  ensure
    GC.enable
  end

  def test_the_statistics_of_a_server_that_has_ended_are_its_last_ones
    server = Fairlead::Server.new(->(_) { [200, {}, []] }, bind: "tcp://127.0.0.1:0").start
    connect(server).get
    server.stop

    assert_equal [1, 0], server.stats.values_at(:requests, :connections)
  end

  # The main thread, which is running a trap, looks alive to the thread that was killed in the request.
  def test_a_program_ends_although_a_request_that_is_killed_makes_it_run_a_trap
    program = <<~RUBY
      require "fairlead"
      require "socket"
      trap("USR1") { sleep 1 }
      inside = Thread::Queue.new
      app = lambda do |_env|
        inside << true
        sleep
      ensure
        Process.kill(:USR1, Process.pid)
        sleep 0.3
      end
      server = Fairlead::Server.new(app, bind: "tcp://127.0.0.1:0", threads: [1, 2]).start
      TCPSocket.new("127.0.0.1", server.port).write("GET / HTTP/1.1\\r\\nhost: a\\r\\n\\r\\n")
      inside.pop
    RUBY
    pid = Process.spawn(RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-e", program)

    assert_predicate wait_until("its end") { Process.wait2(pid, Process::WNOHANG) }.last, :success?
    pid = nil
  ensure
    Process.kill(:KILL, pid) && Process.wait(pid) if pid
  end

  def test_what_the_process_subscribes_and_defers_goes_on_when_one_of_its_servers_ends
    servers = Array.new(2) { Fairlead::Server.new(->(_) { [200, {}, []] }, bind: "tcp://127.0.0.1:0").start }
    heard = Thread::Queue.new
    Fairlead.subscribe("news") { |_, message| heard << message }
    servers.first.stop
    Fairlead.publish("news", "of the other")
    Fairlead.defer { heard << "deferred" }

    wait_until("both") { heard.size == 2 }
    assert_equal ["deferred", "of the other"], [heard.pop, heard.pop].sort
  ensure
    Fairlead.unsubscribe("news")
    servers&.each(&:stop)
  end

  def test_the_end_of_a_server_does_not_wait_for_blocks_that_another_one_can_run
    servers = Array.new(2) { Fairlead::Server.new(->(_) { [200, {}, []] }, bind: "tcp://127.0.0.1:0").start }
    runs = Thread::Queue.new
    again = lambda do
      sleep 0.001
      runs << true
      Fairlead.defer(&again)
    rescue ClosedQueueError
      nil
    end
    Fairlead.defer(&again)
    stop = Thread.new { servers.first.stop(600) }

    wait_until("its end") { stop.join(0.01) }
    before = runs.size
    wait_until("more runs") { runs.size > before }
  ensure
    runs&.close
    servers&.each { |server| server.stop(0) }
  end

  def test_signals_and_children_stay_with_the_program
    server = own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: { "program.rb" => PROGRAM })).start

    assert_equal(["front 3", "back 3"], server.ports.map { |port| adopt(TCPSocket.new("127.0.0.1", port)).get.body })
    assert_equal 7, server.stop.exitstatus
    assert_includes server.stdout, "my own TERM"
  end

  private

  # Threads of this process, native ones included.
  def threads = Dir.children("/proc/self/task").size

  def serve_and_stop(number, **options)
    server = Fairlead::Server.new(->(_) { [200, {}, [number.to_s]] }, bind: "tcp://127.0.0.1:0", threads: [0, 3], **options)
    serving = Thread::Queue.new
    thread = Thread.new { server.run { serving << true } }
    serving.pop
    clients = Array.new(5) { connect(server) }

    assert_equal [number.to_s] * 5, clients.map { |client| client.get.body }
    assert_equal true, server.stop
    thread.join
    assert_raises(Errno::ECONNREFUSED) { connect(server) }
    clients.each(&:close)
  end
end
