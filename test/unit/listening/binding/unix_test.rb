# frozen_string_literal: true

require "minitest/mock"
require "test_helper"
require "socket"

class UnixBindingTest < Minitest::Test
  include Fairlead::Test::Folders

  Binding = Fairlead::Binding
  BindError = Fairlead::BindError

  def teardown
    @listeners&.each(&:close)
  end

  def test_a_path_is_listened_on_and_removed_at_the_end
    in_folder do |folder|
      listener = open("unix://#{folder}/app.sock")

      assert_equal({ scheme: "http", path: "#{folder}/app.sock" }, listener.address)
      assert_equal "unix:#{folder}/app.sock", listener.to_s
      assert_nil listener.port
      UNIXSocket.open("app.sock", &:close)
      listener.remove
      refute_path_exists "app.sock"
    end
  end

  def test_a_path_may_be_relative_and_escaped
    in_folder do |folder|
      Dir.mkdir("tmp")

      assert_equal "unix:#{folder}/tmp/a b.sock", open("unix://tmp/a%20b.sock").to_s
      assert_path_exists "tmp/a b.sock"
    end
  end

  def test_mode_and_umask_are_those_of_the_query
    in_folder do
      open("unix://mode.sock?mode=0640")
      open("unix://umask.sock?umask=0117")

      assert_equal 0o640, File.stat("mode.sock").mode & 0o777
      assert_equal 0o660, File.stat("umask.sock").mode & 0o777
    end
  end

  def test_the_umask_of_the_process_stays
    in_folder do
      before = File.umask
      open("unix://umask.sock?umask=0117")

      assert_equal before, File.umask
    end
  end

  def test_of_servers_that_start_at_the_same_moment_one_listens
    outcomes = Array.new(20) do
      in_folder do
        UNIXServer.new("app.sock").close # closing leaves the file
        outcomes_of(6) { open("unix://app.sock") }
      end
    end

    assert_equal ["1....."], outcomes.uniq
  end

  def test_the_socket_of_a_killed_server_is_replaced
    in_folder do
      UNIXServer.new("app.sock").close # closing leaves the file

      open("unix://app.sock")
      UNIXSocket.open("app.sock", &:close)
    end
  end

  def test_the_socket_of_a_running_server_is_not_replaced
    in_folder do
      other = UNIXServer.new("app.sock")
      error = assert_raises(BindError) { open("unix://app.sock") }

      assert_includes error.message, "another process"
      UNIXSocket.open("app.sock", &:close)
    ensure
      other&.close
    end
  end

  def test_a_file_that_is_no_socket_is_not_replaced
    in_folder("app.sock" => "precious") do
      assert_raises(BindError) { open("unix://app.sock") }
      assert_equal "precious", File.read("app.sock")
    end
  end

  def test_a_path_that_cannot_be_is_an_error
    assert_raises(BindError) { open("unix:///nowhere/at/all.sock") }
    assert_raises(BindError) { open("unix:///tmp/#{"x" * 200}") }
  end

  def test_only_the_process_that_made_the_file_removes_it
    in_folder do
      listener = open("unix://app.sock")
      Process.wait(fork { listener.remove || exit!(0) })

      assert_path_exists "app.sock"
    end
  end

  def test_the_file_of_a_successor_stays
    in_folder do
      listener = open("unix://app.sock")
      File.unlink("app.sock")
      open("unix://app.sock")
      listener.remove

      assert_path_exists "app.sock"
    end
  end

  def test_an_abstract_socket_is_refused_by_other_systems_than_linux
    Fairlead::Binding::Unix.stub(:abstract?, false) do
      error = assert_raises(Fairlead::BindError) { Fairlead::Binding.parse("unix://@name") }

      assert_match(/only Linux .* name a path/, error.message)
    end
  end

  def test_an_abstract_socket_has_no_file
    linux_only("abstract sockets")

    name = "fairlead-test-#{Process.pid}"
    in_folder do
      assert_equal "unix:@#{name}", open("unix://@#{name}").to_s
      assert_empty Dir.children(".")
      Socket.unix("\0#{name}").close
    end
  end

  private

  # Runs the block in +count+ processes at the same moment. They live until all have a result: "1" for a success, "." for a
  # BindError.
  def outcomes_of(count, &block)
    start, results, finish = Array.new(3) { IO.pipe }
    pids = Array.new(count) { fork { exit!(try_in_child(start, results, finish, &block)) } }
    start.each(&:close)
    outcomes = results.first.read(count)
    finish.each(&:close)
    outcomes.chars.sort.reverse.join # "1" comes first
  ensure
    results.each(&:close)
    pids.each { |pid| Process.wait(pid) }
  end

  def try_in_child(start, results, finish)
    [start, finish].each { |_, writer| writer.close }
    start.first.read
    outcome = begin
      yield
      "1"
    rescue BindError
      "."
    end
    results.last.write(outcome)
    finish.first.read
    true
  end

  def open(uri)
    listeners = Binding.parse(uri).open(backlog: 5)
    (@listeners ||= []).concat(listeners)
    listeners.first
  end
end
