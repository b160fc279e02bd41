# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# A disk that stalls for a while: only responses with bytes for it wait, and no thread of the application.
class StalledDiskTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  SIZE = 8_000_000

  APP = <<~RUBY.freeze
    TEXT = ("x" * #{SIZE}).freeze
    run lambda { |env|
      case env["PATH_INFO"]
      when "/large" then [200, {}, [TEXT]]
      when "/yielded" then [200, {}, Enumerator.new { |out| 80.times { out << TEXT[0, #{SIZE / 80}] } }]
      else [200, {}, [env["rack.input"].read.bytesize.to_s]]
      end
    }
  RUBY

  def test_answers_that_nobody_reads_hold_no_thread_while_the_disk_stands_still
    on_stalled_disk do |server, thaw|
      clients = %w[/large /yielded /large].map { |path| connect(server).request("GET", path) }

      5.times { assert_equal "0", get(server, "/small").body }
      thaw.call
      assert_equal([SIZE] * 3, clients.map { |client| client.answer.body.bytesize })
    end
  end

  def test_an_upload_waits_for_the_disk_and_nobody_else_does
    on_stalled_disk do |server, thaw|
      upload = connect(server)
      sender = Thread.new { upload.request("POST", "/upload", {}, body: "y" * SIZE) }

      20.times { assert_equal "0", get(server, "/small").body }
      thaw.call
      sender.join
      assert_equal SIZE.to_s, upload.answer.body
    end
  end

  private

  # Yields a server with one thread and a function. The server's temporary files are on a disk that stalls until the function
  # is called.
  def on_stalled_disk
    skip "only root can mount" unless Process.uid.zero?

    server = launch(APP, "-t", 1, "--temp-dir", "disk", files: { "disk/.keep" => "" }, &:itself)
    disk = server.path("disk")
    skip "this process may not mount" unless mount(server.path("image"), disk)
    begin
      server.start
      skip "this file system cannot be frozen" unless quietly("fsfreeze", "--freeze", disk)
      thaw = -> { quietly("fsfreeze", "--unfreeze", disk) }
      yield server, thaw
    ensure
      # Before all else: a process that writes to the disk cannot be ended earlier.
      quietly("fsfreeze", "--unfreeze", disk)
      server.kill_all
      quietly("umount", disk)
    end
  end

  def mount(image, disk)
    File.open(image, "w") { |file| file.truncate(64 * (1024**2)) }
    quietly("mkfs.ext4", "-q", "-F", image) && quietly("mount", "-o", "loop", image, disk)
  end

  def quietly(*command) = system(*command, out: File::NULL, err: File::NULL)
end
