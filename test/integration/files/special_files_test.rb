# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/file_serving"

# Names in the public folder that are not regular files: the server neither keeps them open nor waits for them.
class SpecialFilesTest < Minitest::Test
  include Fairlead::Test::FileServing

  # Well below the timeout of a test: a reader that waits for a writer waits forever.
  SECONDS = 5

  def test_a_fifo
    client = connect(serve_public({ "page.txt" => "page" }) { |one| File.mkfifo(one.path("public/fifo.txt")) })

    3.times { assert_at_once_from_app client, "/fifo.txt" }
    assert_file "page", client.get("/page.txt")
  end

  def test_a_fifo_that_somebody_writes_to
    server = serve_public({}) { |one| File.mkfifo(one.path("public/fifo.txt")) }
    fifo = File.open(server.path("public/fifo.txt"), File::RDWR)
    fifo.write_nonblock("CANARY")

    assert_at_once_from_app connect(server), "/fifo.txt"
    assert_equal "CANARY", fifo.read_nonblock(100)
  ensure
    fifo&.close
  end

  def test_a_fifo_in_the_place_of_an_index_or_a_folder
    server = serve_public({ "sub/page.txt" => "page" }) do |one|
      File.mkfifo(one.path("public/index.html"))
      File.mkfifo(one.path("public/sub/index.html"))
    end
    client = connect(server)

    %w[/ /index.html /sub /sub/ /index.html/x].each { |path| assert_at_once_from_app client, path }
  end

  def test_a_socket
    client = connect(serve_public({}) { |one| UNIXServer.new(one.path("public/app.sock")).close })

    assert_at_once_from_app client, "/app.sock"
  end

  def test_a_folder
    client = connect(serve_public({ "folder.txt/page.txt" => "page" }))

    %w[/folder.txt /folder.txt/].each { |path| assert_at_once_from_app client, path }
  end

  def test_a_device
    server = serve_public({}) do |one|
      skip "only root may make devices" unless system("mknod", one.path("public/zero"), "c", "1", "5", err: File::NULL)
    end

    assert_at_once_from_app connect(server), "/zero"
  end

  def test_a_device_or_a_fifo_behind_a_link_that_may_be_followed
    server = serve_public({}, "--public-symlinks", "all") do |one|
      { "zero" => "/dev/zero", "tty" => "/dev/tty", "null" => "/dev/null", "fifo" => one.path("outside") }.each do |name, target|
        File.symlink(target, one.path("public/#{name}"))
      end
      File.mkfifo(one.path("outside"))
    end
    client = connect(server)

    %w[/zero /tty /null /fifo].each { |path| assert_at_once_from_app client, path }
  end

  def test_a_file_that_may_not_be_read
    server = serve_public({ "secret.txt" => "CANARY", "closed/page.txt" => "CANARY", "page.txt" => "page" }, app: unprivileged) do |one|
      FileUtils.chmod(0o755, one.directory)
      FileUtils.chmod(0, [one.path("public/secret.txt"), one.path("public/closed")])
    end
    client = connect(server)

    %w[/secret.txt /closed/page.txt /closed /closed/].each { |path| assert_at_once_from_app client, path }
    assert_file "page", client.get("/page.txt")
    FileUtils.chmod(0o644, server.path("public/secret.txt"))
    assert_file "CANARY", client.get("/secret.txt")
  end

  def test_a_file_that_was_served_and_may_not_be_read_any_more
    server = serve_public({ "page.txt" => "page", "large.bin" => noise(300_000) }, app: unprivileged) { |one| FileUtils.chmod(0o755, one.directory) }
    client = connect(server)
    settle(server.path("public/page.txt"))
    { "/page.txt" => "page", "/large.bin" => noise(300_000) }.each do |path, content|
      3.times { assert_file content, client.get(path) }
      FileUtils.chmod(0, server.path("public#{path}"))

      assert_at_once_from_app client, path
    end
  end

  # Caches would believe a 404, which would be wrong.
  def test_a_file_that_cannot_be_opened_for_want_of_descriptors
    server = serve_public({ "page.txt" => "page", "large.bin" => noise(300_000), "folder/page.txt" => "page" }, app: HOARDER)
    client = connect(server)
    settle(server.path("public/page.txt"))
    get(server, "/page.txt")
    assert_equal "EMFILE", client.get("/hoard").body

    %w[/page.txt /large.bin].each { |path| assert_includes [200, 503], client.get(path).status, path }
    %w[/missing /folder/missing].each { |path| assert_from_app client.get(path), "the file does not exist" }
    assert_equal "released", client.request("POST", "/release", {}, body: "please").answer.body
    assert_file "page", client.get("/page.txt")
    assert_file noise(300_000), client.get("/large.bin")
  end

  # Opens all available descriptors, and closes them again.
  HOARDER = <<~RUBY
    Process.setrlimit(:NOFILE, 200)
    HOARD = []
    run lambda { |env|
      case env["PATH_INFO"]
      when "/hoard"
        begin
          loop { HOARD << File.open(File::NULL) }
        rescue Errno::EMFILE
          [200, {}, ["EMFILE"]]
        end
      when "/release"
        HOARD.each(&:close).clear
        [200, {}, ["released"]]
      else [404, { "x-from" => "app" }, []]
      end
    }
  RUBY

  def test_a_regular_file_takes_the_place_of_a_fifo
    server = serve_public({}) { |one| File.mkfifo(one.path("public/page.txt")) }
    client = connect(server)
    assert_at_once_from_app client, "/page.txt"
    File.rename(server.write("new.txt", "page"), server.path("public/page.txt"))

    assert_file "page", client.get("/page.txt")
  end

  # Such a file has a size of zero. The kernel produces its content when it is read.
  def test_a_file_of_the_system_that_the_application_sends
    skip "this machine has no /proc" unless File.exist?("/proc/self/status")

    server = serve_folder({ "empty.txt" => "" }, app: <<~'RUBY')
      class Body
        def initialize(path) = @path = path
        def to_path = @path
        def each = yield(File.read(@path))
      end

      run ->(env) { [200, { "content-type" => "text/plain" }, Body.new(env["QUERY_STRING"])] }
    RUBY

    assert_match(/^Pid:\t#{server.serving_pid}$/, get(server, "/?/proc/self/status").body)
    empty = get(server, "/?#{server.path("empty.txt")}")
    assert_equal [200, "", "0"], [empty.status, empty.body, empty["content-length"]]
  end

  def test_a_file_of_the_system_that_the_application_names
    server = serve_folder({}, "--sendfile-root", "/proc/sys/kernel", app: <<~RUBY)
      run ->(env) { [200, { "x-sendfile" => env["QUERY_STRING"] }, []] }
    RUBY

    assert_equal 404, get(server, "/?/proc/sys/kernel/ostype").status
    assert_logged("the app named a file", server)
  end

  private

  # The application, in a process that root has started and that has given up its privileges.
  def unprivileged = "Process::UID.change_privilege(65_534) if Process.uid.zero?\n#{APP}"

  def assert_at_once_from_app(client, path)
    client.request("GET", path)
    assert client.readable?(SECONDS), "#{path}: no response"
    assert_from_app client.answer, path
  end
end
