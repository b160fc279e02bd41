# frozen_string_literal: true

require "test_helper"
require "socket"

# Threads and connections that keep a process from being copied.
class ForkSafetyTest < Minitest::Test
  # Other tests leave threads behind, but not in a new process.
  def problems(code, call = "problems", **streams)
    output = IO.popen([RbConfig.ruby, "-I", File.expand_path("../../../lib", __dir__), "-rfairlead", "-rsocket", "-e", <<~RUBY], **streams, &:read)
      #{code}
      Thread.pass until Thread.list.all? { |thread| thread == Thread.current || thread.stop? }
      puts Fairlead::ForkSafety.#{call}
    RUBY
    output.lines(chomp: true)
  end

  # Of a process that serves on LISTENER.
  def lasting_problems(code)
    problems(code, "lasting_problems { Fairlead::ForkSafety::Connections.beside([{ scheme: 'http', port: LISTENER.addr[1] }]) }")
  end

  def test_a_process_without_threads_and_connections_can_be_copied
    assert_empty problems("TCPServer.new('127.0.0.1', 0); IO.pipe; Socket.pair(:UNIX, :STREAM); UDPSocket.new.connect('127.0.0.1', 9)")
  end

  def test_each_thread_of_the_application_is_told
    told = problems("Thread.new { sleep }; Thread.new { sleep }.name = 'reporter'")

    assert_equal ["thread -e:1 would not run in the copies", "thread @reporter -e:1 would not run in the copies"], told
  end

  def test_threads_with_names_of_any_bytes_are_told
    told = problems('["\xFF".b, "a\nforged"].each { |name| Thread.new { sleep }.name = name }')

    assert_equal ["thread @\\xFF -e:1 would not run in the copies", "thread @a\\x0Aforged -e:1 would not run in the copies"], told
  end

  def test_threads_that_start_again_are_no_problem
    assert_empty problems("Thread.new { sleep }.thread_variable_set(:fork_safe, true); require 'timeout'; Timeout.timeout(5) { 1 }")
    assert_empty problems("Thread.new { sleep }[:fork_safe] = true")
  end

  def test_threads_of_a_file_with_the_name_of_a_library_are_told
    Dir.mktmpdir do |folder|
      path = File.join(folder, "timeout.rb")
      File.write(path, "Thread.new { sleep }")

      assert_equal ["thread #{path}:1 would not run in the copies"], problems("require 'timeout'; load #{path.dump}")
    end
  end

  # It has the name of the thread that has started it.
  def test_a_native_thread_that_a_request_has_started_is_told
    told = problems(<<~RUBY)
      require "fiddle"
      Thread.new do
        Thread.current.name = "fairlead 1"
        create = Fiddle::Function.new(Fiddle.dlopen(nil)["pthread_create"], [Fiddle::TYPE_VOIDP] * 4, Fiddle::TYPE_INT)
        create.call(Fiddle.malloc(Fiddle::SIZEOF_VOIDP), nil, Fiddle.dlopen(nil)["sleep"], 1000)
        Thread.current.name = Fairlead::Engine::Threads::ENDED
      end.join
    RUBY

    assert_equal ["the native thread fairlead 1 would not run in the copies"], told
  end

  def test_timers_that_concurrent_ruby_forgets_in_a_copy_are_told
    assert_empty problems("require 'concurrent'; Concurrent::Future.execute { 1 }.value")
    told = problems("require 'concurrent'; Concurrent::TimerTask.new(execution_interval: 100) { 1 }.execute")

    assert_equal ["timers of concurrent-ruby (1) would not run in the copies"], told
  end

  # Copies share its pipes.
  def test_a_child_process_is_told_until_it_has_ended
    told = problems("PIPE = IO.popen('cat', 'r+')")

    assert_match(/\Athe child process \d+ \(cat\) would be shared by the copies\z/, told.join)
    assert_empty problems("spawn('true').then { |pid| Thread.pass until File.read(\"/proc/\#{pid}/stat\").include?(') Z ') }")
  end

  def test_each_connection_is_told
    server = TCPServer.new("127.0.0.1", 0)
    folder = Dir.mktmpdir
    path = File.join(folder, "database")
    socket = UNIXServer.new(path)
    told = problems("A = TCPSocket.new('127.0.0.1', #{server.addr[1]}); B = UNIXSocket.new(#{path.dump})")

    assert_equal ["the connection to #{path} would be shared by the copies",
                  "the connection to 127.0.0.1:#{server.addr[1]} would be shared by the copies"], told.sort
  ensure
    [server, socket].compact.each(&:close)
    FileUtils.remove_entry(folder) if folder
  end

  # systemd passes a connection to its journal.
  def test_a_standard_stream_may_be_a_connection
    folder = Dir.mktmpdir
    socket = UNIXServer.new(File.join(folder, "journal"))
    stream = UNIXSocket.new(socket.path)

    assert_empty problems("$stderr.dup.close_on_exec = true; KEPT = $stderr.dup", err: stream)
  ensure
    [stream, socket].compact.each(&:close)
    FileUtils.remove_entry(folder) if folder
  end

  def test_connections_of_clients_are_no_problem_of_a_process_that_serves
    told = lasting_problems(<<~RUBY)
      LISTENER = TCPServer.new("127.0.0.1", 0)
      OPENED = TCPSocket.new("127.0.0.1", LISTENER.addr[1])
      ACCEPTED = LISTENER.accept
      puts "the connection to 127.0.0.1:\#{LISTENER.addr[1]} would be shared by the copies"
    RUBY

    assert_equal 2, told.size
    assert_equal 1, told.uniq.size
  end

  # Requests have threads of their own.
  def test_a_thread_that_soon_ends_is_no_problem_of_a_process_that_serves
    told = lasting_problems("LISTENER = TCPServer.new('127.0.0.1', 0); Thread.new { sleep }; Thread.new { sleep 1 }")

    assert_equal ["thread -e:1 would not run in the copies"], told
  end
end
