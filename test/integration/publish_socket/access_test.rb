# frozen_string_literal: true

require "test_helper"
require "support/outside_publishers"

# The place of the publish socket, its users, and servers that share a folder.
class PublishSocketAccessTest < Minitest::Test
  include Fairlead::Test::OutsidePublishers

  STRANGER = 12_345

  def test_only_its_owner_may_use_the_file
    server = hearing(0)
    stat = File.stat(server.path(SOCKET))

    assert_equal [true, 0o600, Process.euid], [stat.socket?, stat.mode & 0o777, stat.uid]
  end

  def test_there_is_none_without_the_adapter_or_with_false
    [{ files: { "config/cable.yml" => "production:\n  adapter: redis\n" } }, { config: "publish_socket false\n" }].each do |options|
      server = hearing(0, **options)

      assert_empty Dir.children(server.path("tmp")) - [".keep"]
      assert_equal 1, reply(server).first.to_i
    end
  end

  def test_there_is_none_in_a_folder_of_another_kind
    server = supervised(0)

    refute_path_exists server.path("tmp")
    assert_empty server.stderr
  end

  def test_the_variable_sets_the_path_for_both
    server = hearing(0, environment: { "FAIRLEAD_PUBLISH_SOCKET" => "publish.sock" })
    publisher, = publisher(server, Fairlead::PublishSocket.find(server.directory, environment: { "FAIRLEAD_PUBLISH_SOCKET" => "publish.sock" }))

    assert publisher.publish("news", "hello")
    wait_for_hearing(server, "hello")
  end

  def test_a_server_that_was_killed_leaves_a_file_that_the_next_one_replaces
    server = hearing(0)
    server.kill_all
    assert_path_exists server.path(SOCKET)
    server.forget
    server.start
    publisher, = publisher(server)

    assert publisher.publish("news", "hello")
    assert_empty server.stderr
  end

  def test_a_second_server_of_a_folder_says_so_and_leaves_the_socket_to_the_first
    first = hearing(0)
    second = own(first.again)
    second.define_singleton_method(:log_path) { |stream| path("second-#{stream}.log") }
    second.start
    assert_match(/warning: .* cannot publish through it: cannot listen on .*: another process listens on it \(publish_socket\)/, second.stderr)
    publisher, = publisher(first)
    assert publisher.publish("news", "hello")
    wait_for_hearing(first, "hello")
    assert_equal [first.serving_pid.to_s], heard(first).keys
    assert_restarts(second)

    assert_equal 0, second.stop.exitstatus
    assert publisher.publish("news", "again")
    assert_path_exists first.path(SOCKET)
  end

  def test_without_room_at_the_usual_place_the_server_says_so_and_goes_on
    server = hearing(0, files: { SOCKET => "no socket" })

    assert_match(/warning: .*the path exists and is not a socket \(publish_socket\)/, server.stderr)
    assert_equal "1", reply(server).first
    assert_equal "no socket", File.read(server.path(SOCKET))
  end

  def test_a_path_that_was_given_and_cannot_be_used_is_an_error
    server = prepared(0, config: %(publish_socket "no/such/folder/publish.sock"\n), &:launch)
    server.wait_exit

    assert_equal 1, server.status.exitstatus
    assert_match(%r{cannot listen on unix://.*/no/such/folder/publish\.sock}, server.stderr)
  end

  def test_a_process_of_another_user_is_refused_by_the_server
    skip_unless_root
    server = hearing(0)
    [server.directory, server.path("tmp"), server.path("tmp/sockets")].each { |folder| File.chmod(0o755, folder) }
    assert_equal "Errno::EACCES", as_stranger(server)
    File.chmod(0o666, server.path(SOCKET))

    assert_equal "closed", as_stranger(server)
    wait_for_line(server, /closed a connection to unix:.* from (?:process \d+|a process) of user #{STRANGER}: it belongs to another user/)
    assert beside(server, "exit(server.publish('news', 'hello'))")
  end

  def test_a_process_sends_nothing_to_a_socket_of_another_user
    skip_unless_root
    server = hearing(0)
    publisher, log = publisher(server)
    File.chown(STRANGER + 1, nil, server.path(SOCKET))
    File.chmod(0o755, server.directory)
    pid = fork do
      Process::UID.change_privilege(STRANGER)
      sent = publisher.publish("news", "secret")
      exit!(!sent && log.string.include?("it belongs to another user"))
    end

    assert_predicate Process.wait2(pid).last, :success?
    assert_empty heard(server)
  end

  private

  # Returns the outcome of a connection of another user.
  def as_stranger(server)
    reader, writer = IO.pipe
    pid = fork do
      Process::UID.change_privilege(STRANGER)
      socket = UNIXSocket.new(server.path(SOCKET))
      writer.write(socket.read.empty? ? "closed" : "answered")
    rescue SystemCallError => e
      writer.write(e.class.name)
    ensure
      exit!(0)
    end
    writer.close
    reader.read
  ensure
    Process.wait(pid)
  end
end
