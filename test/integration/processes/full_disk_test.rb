# frozen_string_literal: true

require "test_helper"
require "support/restarts"

# A full disk for the files of a server: a start is refused, and a hot restart leaves everything as it was.
class FullDiskTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Restarts

  FILES = ["--state", "small/server.state", "--pidfile", "small/server.pid", "--control-url", "auto"].freeze

  def test_a_start_needs_its_state_file
    on_small_disk do |server|
      fill(server)

      assert_equal 1, server.launch.wait_exit.exitstatus
      assert_match(%r{\Afairlead: (pid|state) file .*small/server\.\w+: No space left on device$}, server.stderr)
    end
  end

  [[], ["-w", 1]].each do |processes|
    define_method("test_a_hot_restart_without_room_for_its_files_changes_nothing_#{processes.any? ? "with" : "without"}_workers") do
      on_small_disk(*processes) do |server|
        server.start
        File.unlink(server.path("small/server.pid"), server.path("small/server.state"))
        fill(server)
        server.write("version", "2")
        server.signal(:USR2)

        server.wait_for_output(/hot restart: failed, generation 1 goes on serving: (pid|state) file .*: No space left on device$/)
        assert_equal ["1", 1], [version(server), server.stderr.lines.size]
        File.unlink(server.path("small/ballast"))
        server.signal(:USR2)
        restarted(server, "hot restart")
        assert_equal "2", version(server)
        assert_match(/^pid: #{server.pid}$/, File.read(server.path("small/server.state")))
        assert_equal 0, server.stop.exitstatus
        assert_empty Dir.children(server.path("small")) - [".keep"]
      end
    end
  end

  private

  # Fills the disk.
  def fill(server)
    File.open(server.path("small/ballast"), "wb") { |file| loop { file.syswrite("x" * 4096) } }
  rescue Errno::ENOSPC
    nil
  end

  def on_small_disk(*arguments)
    skip "only root can mount" unless Process.uid.zero?

    server = launch(VERSIONED, *FILES, *arguments, files: { "version" => "1", "small/.keep" => "" }, &:itself)
    skip "this process may not mount" unless system("mount", "-t", "tmpfs", "-o", "size=64k", "none", server.path("small"), err: File::NULL)
    begin
      yield server
    ensure
      server.kill_all
      system("umount", server.path("small"))
    end
  end
end
