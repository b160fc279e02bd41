# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# No room for temporary files: requests that need one are refused, all others are served.
class DiskTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = <<~RUBY
    run lambda { |env|
      next [200, {}, ["y" * 6_000_000]] if env["PATH_INFO"] == "/large"
      [200, {}, [env["rack.input"].read.bytesize.to_s]]
    }
  RUBY

  LARGE = "x" * 3_000_000

  def test_a_large_body_is_refused_while_its_folder_is_missing
    server = serve(APP, "-t", 1, "--temp-dir", "spill", files: { "spill/.keep" => "" })
    folder = server.path("spill")
    FileUtils.mv(folder, "#{folder}-away")

    assert_equal 507, status_of_upload(server)
    assert_logged("there is no temporary folder for the body", server)
    assert_equal "5", ask(server, "POST", "/", {}, "small").body
    FileUtils.mv("#{folder}-away", folder)
    assert_equal LARGE.bytesize.to_s, ask(server, "POST", "/", {}, LARGE).body
  end

  def test_a_large_body_is_refused_when_the_disk_is_full
    on_full_disk do |server|
      assert_equal 507, status_of_upload(server)
      assert_equal "5", ask(server, "POST", "/", {}, "small").body
      assert_logged("refused 507 (no room for the body in the temporary folder)", server)
    end
  end

  def test_a_large_answer_waits_for_its_client_when_the_disk_is_full
    on_full_disk do |server|
      assert_equal 6_000_000, get(server, "/large").body.bytesize
      assert_equal 200, get(server).status
    end
  end

  def test_the_log_says_that_answers_stay_in_memory_while_their_folder_is_missing
    server = serve(APP, "-t", 1, "--temp-dir", "spill", files: { "spill/.keep" => "" })
    FileUtils.rm_r(server.path("spill"))
    client = narrow_client(server)
    client.request("GET", "/large")

    assert_logged(/keeps a response to a slow client in memory: entity not found in temp_dir/, server)
    assert_equal 6_000_000, client.answer.body.bytesize
  end

  private

  # The refusal may come before the upload is complete.
  def status_of_upload(server)
    client = connect(server)
    begin
      client.request("POST", "/", {}, body: LARGE)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    end
    client.answer.status
  end

  # Yields a server with room for 1 MB of temporary files.
  def on_full_disk
    skip "only root can mount" unless Process.uid.zero?

    server = launch(APP, "-t", 1, "--temp-dir", "small", files: { "small/.keep" => "" }, &:itself)
    skip "this process may not mount" unless system("mount", "-t", "tmpfs", "-o", "size=1m", "none", server.path("small"), err: File::NULL)
    begin
      yield server.start
    ensure
      server.kill_all
      system("umount", server.path("small"))
    end
  end
end
