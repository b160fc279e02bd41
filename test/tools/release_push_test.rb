# frozen_string_literal: true

require "test_helper"
require "digest"
require "json"
require "socket"
require_relative "../../rakelib/release/push"

# A gem server that only knows its versions, and a program in the place of `gem push` that notes what it gets.
class ReleasePushTest < Minitest::Test
  GEMS = %w[fairlead-0.1.0-x86_64-linux.gem fairlead-0.1.0.gem fairlead-load-0.1.0-x86_64-linux.gem fairlead-load-0.1.0.rc1.gem].freeze

  def setup
    @folder = Dir.mktmpdir
    GEMS.each { |name| File.write(path(name), name) }
    write_sums
    @published = []
    @server = TCPServer.new("127.0.0.1", 0)
    @thread = Thread.new { serve }
  end

  def teardown
    @thread.kill
    @server.close
    FileUtils.rm_rf(@folder)
  end

  def test_gems_that_compile_come_first
    push

    assert_equal GEMS.values_at(1, 3, 0, 2), pushed
  end

  def test_what_is_published_is_left_out
    @published = [Digest::SHA256.hexdigest(GEMS[0])]
    push

    assert_equal GEMS.values_at(1, 3, 2), pushed
  end

  def test_a_failure_ends_the_work_and_can_be_repeated
    File.write(path("broken"), GEMS[3])

    assert_raises(Release::Push::Failed) { push }
    assert_equal [GEMS[1]], pushed
  end

  def test_nothing_is_pushed_if_a_file_is_not_the_one_of_the_checksums
    File.write(path(GEMS[0]), "other")

    error = assert_raises(Release::Push::Failed) { push }
    assert_match(/\A#{GEMS[0]}: not the file/, error.message)
    assert_empty pushed
  end

  private

  def path(name) = File.join(@folder, name)

  def write_sums = File.write(path("SHA256SUMS"), GEMS.map { |name| "#{Digest::SHA256.hexdigest(name)}  #{name}\n" }.join)

  def pushed = File.exist?(path("pushed")) ? File.readlines(path("pushed"), chomp: true) : []

  def push
    FileUtils.mkdir_p(path("bin"))
    File.write(path("bin/gem"), <<~SH)
      #!/bin/sh
      name=$(basename "$4")
      if [ -f #{path("broken")} ] && [ "$name" = "$(cat #{path("broken")})" ]; then exit 1; fi
      echo "$name" >> #{path("pushed")}
    SH
    File.chmod(0o755, path("bin/gem"))
    before = ENV.fetch("PATH")
    ENV["PATH"] = "#{path("bin")}:#{before}"
    capture_io { Release::Push.new(@folder, host: "http://127.0.0.1:#{@server.addr[1]}").run }
  ensure
    ENV["PATH"] = before
  end

  def serve
    loop do
      client = @server.accept
      nil until client.gets == "\r\n"
      body = JSON.generate(@published.map { |sum| { "sha" => sum } })
      client.write("HTTP/1.1 200 OK\r\ncontent-length: #{body.bytesize}\r\nconnection: close\r\n\r\n#{body}")
      client.close
    end
  end
end
