# frozen_string_literal: true

require "test_helper"

class StateFolderTest < Minitest::Test
  include Fairlead::Test::Folders

  StateFolder = Fairlead::StateFolder

  def test_the_usual_place_is_that_of_the_service_or_of_the_user
    {
      { "HOME" => "/home/ann" } => "/home/ann/.local/state/fairlead/acme",
      { "HOME" => "/home/ann", "XDG_STATE_HOME" => "/state" } => "/state/fairlead/acme",
      { "HOME" => "/home/ann", "XDG_STATE_HOME" => "state" } => "/home/ann/.local/state/fairlead/acme",
      { "HOME" => "/home/ann", "STATE_DIRECTORY" => "/var/lib/shop:/var/lib/other" } => "/var/lib/shop/acme"
    }.each { |environment, path| assert_equal path, StateFolder.default("acme", environment: environment) }
  end

  def test_there_is_a_place_without_a_home
    assert StateFolder.default("acme", environment: {}).start_with?("/")
  end

  def test_what_is_written_is_the_owners_alone
    with_folder do |folder|
      folder.write("deep", "down", "file", "text")

      assert_equal "text", folder.read("deep", "down", "file")
      assert_equal [0o600, 0o700, 0o700, 0o700], %w[deep/down/file deep/down deep .].map { |path| File.stat(folder.join(path)).mode & 0o777 }
      assert_equal ["file"], folder.names("deep", "down")
    end
  end

  def test_a_file_is_replaced_as_a_whole_and_private_whatever_it_was_before
    with_folder do |folder|
      folder.write("file", "old")
      File.chmod(0o644, folder.join("file"))
      reader = File.open(folder.join("file"))
      folder.write("file", "new")

      assert_equal %w[old new], [reader.read, folder.read("file")]
      assert_equal 0o600, File.stat(folder.join("file")).mode & 0o777
    ensure
      reader&.close
    end
  end

  def test_nobody_can_prepare_a_file_or_a_link_for_the_text
    with_folder do |folder|
      victim = folder.write("victim", "precious")
      File.symlink(victim, folder.join("key.#{Process.pid}~"))
      folder.write("key", "new")

      assert_equal %w[precious new], [folder.read("victim"), folder.read("key")]
      File.symlink(folder.join("elsewhere"), folder.join("lock"))
      assert_raises(Errno::ELOOP) { folder.exclusively { flunk } }
    end
  end

  def test_nothing_is_kept_where_other_users_may_write
    with_folder do |folder|
      folder.write("keys", "key", "secret")
      [folder.path, folder.join("keys")].each do |place|
        [0o720, 0o702].each do |mode|
          File.chmod(mode, place)
          refused = assert_raises(Errno::EACCES) { folder.write("keys", "key", "new") }

          assert_includes refused.message, "other users may write to #{place}; `chmod go-w`"
        end
        File.chmod(0o700, place)
      end
      File.chmod(0o777, folder.path)

      assert_raises(Errno::EACCES) { folder.exclusively { flunk } }
    end
  end

  STRANGER = 12_345

  def test_root_takes_no_folder_of_another_user
    skip "needs root" unless Process.uid.zero?
    with_folder do |folder|
      folder.write("keys", "key", "secret")
      [folder.path, folder.join("keys")].each do |place|
        File.chown(STRANGER, nil, place)
        assert_refused(folder, "#{place} belongs to another user")
        File.chown(0, nil, place)
      end
      File.chown(STRANGER, nil, folder.join("keys", "key"))

      assert_equal "secret", folder.read("keys", "key")
    end
  end

  def test_root_follows_no_link_of_another_user
    skip "needs root" unless Process.uid.zero?
    with_folder do |folder|
      victim = folder.write("victim", "key", "secret")
      links = { "keys" => File.dirname(victim), "key" => victim }.map { |name, to| folder.join(name).tap { |link| File.symlink(to, link) } }

      assert_equal %w[secret secret], [folder.read("keys", "key"), folder.read("key")]
      links.each { |link| File.lchown(STRANGER, nil, link) }
      assert_refused(folder, "#{links.first} is a link of another user")
      assert_raises(Errno::EACCES) { folder.read("key") }
      assert_equal "secret", File.read(victim)
    end
  end

  def test_temporary_files_that_a_killed_process_has_left_are_swept_away
    with_folder do |folder|
      folder.write("keys", "key", "secret")
      old, new, other = %w[key.0123456789abcdef~ key.fedcba9876543210~ backup~].map { |name| folder.write("keys", name, "secret") }
      [old, other].each { |path| File.utime(Time.now - 100, Time.now - 100, path) }
      folder.sweep

      assert_equal [false, true, true], [old, new, other].map { |path| File.exist?(path) }
      assert_equal "secret", folder.read("keys", "key")
    end
  end

  # A worker that forks during an order inherits the descriptor of the lock.
  def test_a_process_that_was_forked_meanwhile_does_not_keep_the_lock
    with_folder do |folder|
      reader, writer = IO.pipe
      child = folder.exclusively { fork { writer.close && reader.read && exit!(0) } }

      assert_equal :free, folder.exclusively { :free }
    ensure
      [reader, writer].compact.each(&:close)
      Process.wait(child) if child
    end
  end

  def test_different_names_are_different_locks
    with_folder do |folder|
      assert_equal :both, folder.exclusively("locks", "a") { folder.exclusively("locks", "b") { :both } }
      refute(folder.exclusively("locks", "a") { folder.exclusively("locks", "a") { flunk } })
    end
  end

  def test_what_is_not_there_is_nothing
    with_folder do |folder|
      assert_nil folder.read("file")
      assert_nil folder.delete("file")
      assert_empty folder.names("folder")
    end
  end

  def test_two_do_not_do_it_at_once
    with_folder do |folder|
      inner = folder.exclusively { StateFolder.new(folder.path).exclusively { flunk } || :busy }

      assert_equal :busy, inner
      assert_equal :free, folder.exclusively { :free }
    end
  end

  def test_one_can_wait_for_another
    with_folder do |folder|
      order = Thread::Queue.new
      other = folder.exclusively do
        thread = Thread.new { StateFolder.new(folder.path).exclusively(wait: true) { order << :second } }
        Fairlead::Test::Waiting.wait_until("the other to wait") { thread.status == "sleep" }
        order << :first
        thread
      end
      other.join

      assert_equal %i[first second], [order.pop, order.pop]
    end
  end

  private

  def assert_refused(folder, reason)
    refused = [-> { folder.write("keys", "key", "new") }, -> { folder.read("keys", "key") }].map { |action| assert_raises(Errno::EACCES, &action) }

    refused.each { |error| assert_includes error.message, reason }
  end

  # A folder that does not exist yet.
  def with_folder
    in_folder { |folder| yield StateFolder.new(File.join(folder, "state")) }
  end
end
