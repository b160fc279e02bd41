# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# Work that continues while C code in the application keeps the GVL and another thread wants it.
class KeptLockTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Waiting

  # /keep calls open(2) of a pipe without releasing the lock: the call returns when the test opens the other end. /keep-aside
  # does so in its own thread, once there is a file "go".
  APP = <<~RUBY
    require "fiddle"
    KEEP = Fiddle::Function.new(Fiddle::Handle::DEFAULT["open"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT], Fiddle::TYPE_INT,
                                need_gvl: true)
    run lambda { |env|
      keep = -> { KEEP.call(File.expand_path("pipe"), File::RDONLY) }
      case env["PATH_INFO"]
      when "/keep"
        warn("kept")
        keep.call
      when "/keep-aside"
        Thread.new do
          sleep 0.01 until File.exist?("go")
          warn("kept")
          keep.call
        end
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  def test_files_are_served_though_a_thread_wants_the_lock
    keeping("--public", "public", files: { "public/file.txt" => "file" }) do |server, first|
      first.request("GET", "/wants-the-lock")
      5.times { assert_equal "file", get(server, "/file.txt").body }
    end
  end

  def test_a_slow_head_times_out_though_a_thread_wants_the_lock
    keeping("--head-timeout", "0.5") do |server, first|
      first.request("GET", "/wants-the-lock")

      assert_equal 408, connect(server).write("GET / HTTP/1.1\r\n").answer.status
    end
  end

  def test_requests_go_to_another_worker_though_threads_wait_for_work
    server = serve(APP, "-w", 2, "-t", "5:5")
    File.mkfifo(server.path("pipe"))
    clients = Array.new(12) { connect(server) }
    homes = clients.group_by { |client| client.get.body }
    assert_equal 2, homes.size, "both workers have connections"
    home, (keeper, *others) = homes.max_by { |_, list| list.size }
    keep(server, keeper) do
      bodies = others.map { |client| client.request("GET", "/") }.map { |client| client.answer.body }

      assert_equal homes.keys - [home], bodies.uniq
    end
  end

  private

  # Returns a server with five threads, one of which keeps the lock, and a connection to it.
  def keeping(*arguments, files: {})
    server = serve(APP, "-t", "5:5", *arguments, files: files)
    File.mkfifo(server.path("pipe"))
    first = connect(server)
    first.get
    assert_equal 200, get(server, "/keep-aside").status
    server.write("go", "")
    until_released(server) do
      yield server, first
      refute first.readable?, "the lock was not held all the time"
    end
    assert_equal 200, first.answer.status
  end

  def keep(server, client, &block)
    client.request("GET", "/keep")
    until_released(server, &block)
    assert_equal 200, client.answer.status
  end

  def until_released(server)
    server.wait_for_output(/kept/)
    yield
  ensure
    # ENXIO: the pipe has no reader any more.
    wait_until("the pipe to be opened") { File.open(server.path("pipe"), File::WRONLY | File::NONBLOCK, &:close) || true }
  end
end
