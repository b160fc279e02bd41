# frozen_string_literal: true

require "fileutils"
require "net/http"
require "test_helper"
require "tmpdir"

# The files of the library may be gone while it serves, for example after an upgrade and `bundle clean`.
class VanishedLibraryTest < Minitest::Test
  include Fairlead::Test::Servers

  # A slow request says that it has begun, and ends when there is a file.
  APP = <<~'RUBY'
    run lambda { |env|
      if env["PATH_INFO"] == "/slow"
        File.write("begun-#{Process.pid}", "")
        sleep 0.005 until File.exist?("go")
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  FILES = { "config/fairlead.rb" => "before_worker_shutdown { |index| File.write(\"ended-\#{index}\", \"\") }\n" }.freeze

  def test_workers_finish_their_requests
    server = serve_without_library(APP, "-w", 1, files: FILES)
    response = begin_slow(server)
    server.signal(:TERM)
    server.wait_for_output(/TERM: finishing/)
    File.write(server.path("go"), "")

    assert_equal ["200", 0], [response.value, server.wait_exit.exitstatus]
    assert_path_exists server.path("ended-0")
    refute_match(/LoadError/, server.stderr)
  end

  def test_the_only_process_finishes_its_requests
    server = serve_without_library(APP)
    response = begin_slow(server)
    server.signal(:TERM)
    server.wait_for_output(/TERM: finishing/)
    File.write(server.path("go"), "")

    assert_equal ["200", 0], [response.value, server.wait_exit.exitstatus]
  end

  def test_lost_workers_are_replaced
    [[], ["--no-preload"]].each do |arguments|
      server = serve_without_library(APP, "-w", 1, *arguments)
      before = server.worker_pids
      Process.kill(:KILL, *before)
      wait_until("another worker") { (server.worker_pids - before).any? }

      refute_equal before.join, Net::HTTP.get(URI(server.url("/")))
    end
  end

  def test_a_worker_becomes_the_spawner
    server = serve_without_library(APP, "-w", 2)
    server.signal(:URG)
    server.wait_for_output(/refork: done/)
  end

  private

  # The native files stay.
  def serve_without_library(*arguments, **options)
    copy = Dir.mktmpdir("fairlead-lib-")
    (@copies ||= []) << copy
    lib = File.join(Fairlead::Test::ServerProcess::ROOT, "lib")
    Dir.glob("**/*", base: lib).each { |path| place(File.join(lib, path), File.join(copy, path)) }
    server = serve(*arguments, **options, environment: { "RUBYLIB" => [*ENV["RUBYLIB"], copy].join(File::PATH_SEPARATOR) })
    Dir.glob("**/*.rb", base: copy).each { |path| File.delete(File.join(copy, path)) }
    server
  end

  def place(from, to)
    return FileUtils.mkdir_p(to) if File.directory?(from)

    from.end_with?(".rb") ? FileUtils.cp(from, to) : File.symlink(from, to)
  end

  def teardown
    super
    @copies&.each { |copy| FileUtils.rm_rf(copy) }
  end

  def begin_slow(server)
    response = Thread.new { Net::HTTP.get_response(URI(server.url("/slow"))).code }
    response.report_on_exception = false
    wait_until("the beginning of the request") { Dir.glob(server.path("begun-*")).any? }
    response
  end
end
