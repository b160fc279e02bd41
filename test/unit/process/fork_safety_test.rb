# frozen_string_literal: true

require "test_helper"
require "socket"

# Threads and connections that keep a process from being copied.
class ForkSafetyTest < Minitest::Test
  # Other tests leave threads behind, but not in a new process.
  def problems(code)
    output = IO.popen([RbConfig.ruby, "-I", File.expand_path("../../../lib", __dir__), "-rfairlead", "-rsocket", "-e", <<~RUBY], &:read)
      #{code}
      Thread.pass until Thread.list.all? { |thread| thread == Thread.current || thread.stop? }
      puts Fairlead::ForkSafety.problems
    RUBY
    output.lines(chomp: true)
  end

  def test_a_process_without_threads_and_connections_can_be_copied
    assert_empty problems("TCPServer.new('127.0.0.1', 0); IO.pipe; Socket.pair(:UNIX, :STREAM); UDPSocket.new.connect('127.0.0.1', 9)")
  end

  def test_each_thread_of_the_application_is_told
    told = problems("Thread.new { sleep }; Thread.new { sleep }.name = 'reporter'")

    assert_equal ["thread -e:1 would not run in the copies", "thread @reporter -e:1 would not run in the copies"], told
  end

  def test_threads_that_start_again_are_no_problem
    assert_empty problems("Thread.new { sleep }.thread_variable_set(:fork_safe, true); require 'timeout'; Timeout.timeout(5) { 1 }")
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
end
