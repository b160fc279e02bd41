# frozen_string_literal: true

require "test_helper"
require "support/outside_publishers"
require "support/given_programs"

# The publish socket while processes, code and supervisor are replaced.
class PublishSocketRestartsTest < Minitest::Test
  include Fairlead::Test::OutsidePublishers

  SHAPES.each do |name, workers|
    { USR1: "phased", USR2: "hot" }.each do |signal, kind|
      define_method(:"test_no_message_is_lost_or_heard_twice_during_a_#{kind}_restart_#{name}") do
        server = hearing(workers)
        publisher, log = publisher(server)
        results = publishing(publisher) { assert_restarts(server, signal: signal) }

        assert_heard_once(server, results)
        assert_empty log.string
      end
    end

    define_method(:"test_another_version_takes_the_socket_over_#{name}") do
      server = versioned_server(workers, app: HEARING, files: CABLE)
      publisher, log = publisher(server)
      results = publishing(publisher) do
        deploy_other_version(server)
        server.signal(:USR2)
        assert_other_version(server, workers: workers)
      end
      assert publisher.publish("news", "the end")
      wait_for_hearing(server, "the end", processes: [workers, 1].max)

      assert_equal [true], results.uniq
      assert_empty log.string
      heard(server).each_value { |texts| assert_equal texts.uniq, texts }
    end

    define_method(:"test_the_former_version_gets_the_socket_back_#{name}") do
      server = versioned_server(workers, app: HEARING, files: CABLE)
      publisher, log = publisher(server)
      results = publishing(publisher) do
        deploy_other_version(server, "broken")
        server.signal(:USR2)
        wait_for_line(server, /restart: failed/, seconds: 40)
      end

      assert_heard_once(server, results)
      assert_empty log.string
    end
  end

  def test_a_killed_worker_is_all_that_is_missed
    server = hearing(2)
    publisher, = publisher(server)
    results = publishing(publisher) { assert_replaces(server, server.serving_pid) }

    assert_heard_once(server, results)
  end

  def test_a_hot_restart_opens_another_path_and_removes_the_first
    server = hearing(2)
    configure(server, %(publish_socket "other/publish.sock"\n))
    Dir.mkdir(server.path("other"))
    assert_restarts(server)
    other, = publisher(server, server.path("other/publish.sock"))
    wait_until("the new socket") { other.publish("news", "hello") }

    wait_for_hearing(server, "hello", processes: 2)
    refute_path_exists server.path(SOCKET)
    configure(server, "publish_socket false\n")
    assert_restarts(server, "3")
    wait_until("no socket") { !File.exist?(server.path("other/publish.sock")) }
    wait_until("the end of its connection") { !other.publish("news", "nobody is there") }
  end

  # As releases that share the folder.
  def test_a_hot_restart_goes_on_with_the_same_socket_at_another_path
    server = hearing(0, config: %(publish_socket "one/publish.sock"\n)) { |one| prepare_releases(one) }
    publisher, log = publisher(server, server.path("one/publish.sock"))
    results = publishing(publisher) do
      configure(server, %(publish_socket "two/publish.sock"\n))
      assert_restarts(server)
    end
    other, = publisher(server, server.path("two/publish.sock"))

    assert_heard_once(server, results)
    assert other.publish("news", "at the other path")
    assert_empty log.string
    assert_empty server.stderr
  end

  def test_a_hot_restart_opens_a_socket_that_was_deleted
    server = hearing(0)
    File.unlink(server.path(SOCKET))
    publisher, log = publisher(server)
    refute publisher.publish("news", "lost")
    assert_restarts(server)
    wait_until("the socket") { publisher.publish("news", "there") }

    wait_for_hearing(server, "there")
    assert_match(/\AERROR no server listens on .*\nINFO the server on .* is back; \d+ messages? (was|were) lost\n\z/, log.string)
  end

  def test_a_failed_restart_leaves_the_socket
    server = hearing(2)
    server.write("version", "broken")
    serving = server.serving_pids
    server.signal(:USR2)
    assert_refused(server, "this code is broken", serving)
    publisher, = publisher(server)

    assert publisher.publish("news", "hello")
    wait_for_hearing(server, "hello", processes: 2)
  end

  private

  def prepare_releases(server)
    Dir.mkdir(server.path("shared"))
    %w[one two].each { |name| File.symlink("shared", server.path(name)) }
    server.start
  end

  # Each message was taken, some process has heard it, and none has heard it twice. A process that has come or gone meanwhile has heard
  # a part.
  def assert_heard_once(server, results)
    assert_equal [true], results.uniq
    wait_for_hearing(server, results.size - 1)
    all = heard(server).values
    assert_equal (0...results.size).map(&:to_s), all.flatten.uniq.sort_by(&:to_i)
    all.each { |texts| assert_equal texts.uniq, texts }
  end
end
