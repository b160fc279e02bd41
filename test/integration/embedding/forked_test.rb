# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"

# A server in a process that was forked from the serving one. It shares poll set and sockets, and its copies of locks may be
# held by threads that it does not have: its calls must neither harm the parent nor wait forever.
class ForkedTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  ROUNDS = 5
  NATIVE_CALLS = [:leave, :drain, [:retire, 0, 0, false], :stop, :release].freeze

  # Stops its servers at exit, in every process. "main" forks on the main thread, like a program, and "request" in a request.
  PROGRAM = <<~RUBY
    require "fairlead"
    $stdout.sync = true
    from_main, forked = Thread::Queue.new, Thread::Queue.new
    servers = Array.new(2) do
      Fairlead::Server.new(lambda { |env|
        case env["PATH_INFO"]
        when "/main" then from_main << true and forked.pop
        when "/request" then Process.wait(fork { nil })
        end
        [200, {}, [$?&.exitstatus.inspect]]
      }, bind: "tcp://127.0.0.1:0", threads: [3, 3]).start
    end
    at_exit { servers.each(&:stop) }
    servers.each { |server| puts "listening on \#{server.addresses.first}" }
    puts "fairlead inside ready"
    while from_main.pop
      Process.wait(fork { servers.clone.each(&:wait); exit })
      forked << true
    end
  RUBY

  def teardown
    @server&.stop(0)
    super
  end

  %w[main request].each do |thread|
    define_method(:"test_a_child_of_the_#{thread}_that_stops_all_at_exit_leaves_its_parent_alone") do
      program = own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: { "program.rb" => PROGRAM })).start
      ROUNDS.times do
        program.ports.each { |port| assert_equal 200, adopt(TCPSocket.new("127.0.0.1", port)).get("/#{thread}").status }
      end
    end
  end

  # Calls, each with its result in the child.
  {
    "stop" => [->(server) { server.stop(5) }, true], "stop_at_once" => [->(server) { server.stop(0) }, true],
    "stop_without_waiting" => [->(server) { server.stop(wait: false) }, true],
    "wait" => [->(server) { server.wait.equal?(server) }, true],
    "running" => [->(server) { [server.running?, server.inside?] }, [false, false]],
    "stats" => [->(server) { [server.stats, Fairlead.stats[:engines].size] }, [{}, 1]],
    "reopen_logs" => [:reopen_logs.to_proc, false], "reload_certificates" => [:reload_certificates.to_proc, false],
    "a_group" => [->(server) { Fairlead::Group.new.tap { |group| group.servers << server }.stop }, true],
    "its_engine" => [->(server) { engine(server).then { |engine| [engine.drain(5), engine.stop] } }, [true, nil]],
    "its_native_engine" => [->(server) { NATIVE_CALLS.map { |call| native(server).send(*call) } }, [nil] * NATIVE_CALLS.size],
    "collection" => [->(server) { server.instance_variable_set(:@life, nil) || 10.times { GC.start } }, 10],
    "publish_and_defer" => [->(_) { [Fairlead.publish("news", "text"), Fairlead.defer { nil }] }, [true, nil]]
  }.each do |name, (call, expected)|
    define_method(:"test_#{name}_in_a_child") do
      serve_here
      ROUNDS.times do
        assert_equal expected, in_a_child { call.call(@server) }
        assert_equal "here", connect(@server).get.body
      end
    end
  end

  def test_a_child_can_open_addresses_of_its_own_with_the_same_object
    serve_here
    port = @server.port

    assert_equal [true, true, true, false], (in_a_child { [@server.listen.running?, @server.port != port, @server.stop(5), @server.running?] })
    assert_equal "here", connect(@server).get.body
  end

  # The parent's waiting threads do not exist in the child, and the memory of their stacks is reused.
  def test_a_child_of_many_waiting_threads_can_serve
    many = Array.new(12) { another_server }
    many.each { |server| assert_equal "here", connect(server).get.body }

    ROUNDS.times do
      assert_equal ["here"] * 6, in_a_child { Array.new(6) { another_server }.map { |server| connect(server).get.body } }
    end
  ensure
    many&.each { |server| server.stop(0) }
  end

  def test_a_child_of_a_server_that_only_listens_stops_nothing
    @server = Fairlead::Server.new(->(_) { [200, {}, ["here"]] }, bind: "tcp://127.0.0.1:0").listen

    assert_equal true, in_a_child { @server.stop(5) }
    @server.start
    assert_equal "here", connect(@server).get.body
  end

  def self.engine(server) = server.instance_variable_get(:@life).instance_variable_get(:@engine)

  def self.native(server) = engine(server).instance_variable_get(:@native)

  private

  def serve_here
    @server = another_server(threads: [0, 3])
    assert_equal "here", connect(@server).get.body
  end

  def another_server(threads: [4, 4])
    Fairlead::Server.new(->(_) { [200, {}, ["here"]] }, bind: "tcp://127.0.0.1:0", threads: threads).start
  end

  # Returns the result of the block from a forked process, which must end by itself.
  def in_a_child
    reader, writer = IO.pipe
    pid = fork do
      writer.write(Marshal.dump(yield))
    ensure
      writer.close
      exit!
    end
    writer.close
    wait_until("the end of the child") { Process.wait(pid, Process::WNOHANG) }
    Marshal.load(reader.read) # rubocop:disable Security/MarshalLoad -- our own child wrote it
  ensure
    kill(pid)
    reader.close
  end

  def kill(pid)
    Process.kill(:KILL, pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  end
end
