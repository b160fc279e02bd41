# frozen_string_literal: true

require "test_helper"
require "support/file_serving"
require "support/slow_disk"

# A disk or file server that does not respond delays the requests that need it, and no others.
class SlowDiskTest < Minitest::Test
  include Fairlead::Test::FileServing

  parallelize_me!

  FILES = { "stuck.txt" => "stuck", "page.txt" => "page", "large.bin" => "x" * 300_000 }.freeze

  # The query selects the application's response: it names a file, or has a body with a path.
  APP = <<~'RUBY'
    class Body
      def initialize(path) = @path = path
      def to_path = @path
      def each = yield(File.binread(@path))
    end

    run lambda { |env|
      how, path = env["QUERY_STRING"].split("=", 2)
      case how
      when "sendfile" then [200, { "x-sendfile" => path }, []]
      when "fork" then [200, {}, [Process.wait2(fork { exit 7 }).last.exitstatus.to_s]]
      when "to_path" then [200, { "content-type" => "text/plain" }, Body.new(path)]
      else [404, { "content-type" => "text/plain", "x-from" => "app" }, ["#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}"]]
      end
    }
  RUBY

  def teardown
    super
    @disk&.stop
  end

  def test_a_look_up_that_hangs
    server = serve_slowly("public")
    waiting = hang(server, "/stuck.txt", :look_up)

    others_are_served(server, "/page.txt")
    @disk.release

    assert_file "stuck", waiting.answer
  end

  def test_a_read_that_hangs
    server = serve_slowly("public")
    waiting = hang(server, "/stuck.txt", :read)

    others_are_served(server, "/page.txt")
    @disk.release

    assert_file "stuck", waiting.answer
  end

  def test_a_file_system_inside_the_public_folder_that_hangs
    server = serve_slowly("public/mounted", { "public/local.txt" => "local" })
    waiting = hang(server, "/mounted/stuck.txt", :look_up)

    others_are_served(server, "/local.txt")

    assert_equal [503, "1"], waiting.answer.then { |answer| [answer.status, answer["retry-after"]] }
    assert_logged(/its disk does not answer/, server)
  end

  def test_a_path_of_the_application_while_the_public_folder_hangs
    server = serve_slowly("public")
    waiting = hang(server, "/stuck.txt", :look_up)
    answer = waiting.answer

    assert_from_app answer
    assert_logged(%r{passed a request on .*"/stuck.txt"}, server)
    @disk.release

    assert_file "stuck", waiting.get("/stuck.txt")
  end

  def test_a_pause_of_the_server_is_no_time_of_the_disk
    server = serve_slowly("public/mounted")
    waiting = hang(server, "/mounted/stuck.txt", :look_up)
    Process.kill(:STOP, server.serving_pid)
    wait_for_time(5.5)
    Process.kill(:CONT, server.serving_pid)
    wait_for_time(1.5)
    @disk.release

    assert_file "stuck", waiting.answer
  end

  def test_a_file_that_the_application_names
    server = serve_slowly("files", {}, "--sendfile-root", "files")
    waiting = hang(server, "/?sendfile=#{server.path("files/stuck.txt")}", :look_up)

    others_are_served(server)
    @disk.release

    assert_equal [200, "stuck"], waiting.answer.then { |answer| [answer.status, answer.body] }
  end

  def test_a_body_with_a_path
    server = serve_slowly("files")
    waiting = hang(server, "/?to_path=#{server.path("files/stuck.txt")}", :look_up)

    others_are_served(server)
    @disk.release

    assert_equal [200, "stuck"], waiting.answer.then { |answer| [answer.status, answer.body] }
  end

  def test_a_large_file_that_hangs_while_it_is_sent
    large = noise(3_000_000)
    server = serve_slowly("public/mounted", { "public/local.bin" => large })
    waiting = hang(server, "/mounted/large.bin", :read)

    others_are_served(server)

    assert_file large, get(server, "/local.bin")
    @disk.release

    assert_file FILES.fetch("large.bin"), waiting.answer
  end

  # The kernel knows the name, and passes only the request to open the file on to the layer.
  def test_a_layer_of_an_overlay_that_hangs
    server = serve_overlay("public")
    waiting = hang(server, "/large.bin", :open)

    others_are_served(server, "/page.txt")
    @disk.release

    assert_file FILES.fetch("large.bin"), waiting.answer
  end

  def test_a_file_in_memory_whose_layer_of_an_overlay_hangs
    linux_only("a status that tells what is in memory")
    server = serve_overlay("public")
    @disk.stick(:attributes, "page.txt")

    assert_file FILES.fetch("page.txt"), get(server, "/page.txt")
  end

  def test_a_file_of_an_overlay_that_the_application_names
    server = serve_overlay("files", "--sendfile-root", "files") { |path| "/?sendfile=#{path}" }
    waiting = hang(server, "/?sendfile=#{server.path("files/stuck.txt")}", :attributes)

    others_are_served(server)
    @disk.release

    assert_equal [200, "stuck"], waiting.answer.then { |answer| [answer.status, answer.body] }
  end

  # statfs(2) asks the disk each time.
  def test_a_body_with_a_path_on_a_disk_whose_kind_is_known
    server = serve_slowly("files", {}, keep_names: 3600)
    2.times { assert_equal "stuck", get(server, "/?to_path=#{server.path("files/stuck.txt")}").body }
    @disk.stick(:statistics, "stuck.txt")

    assert_equal "stuck", get(server, "/?to_path=#{server.path("files/stuck.txt")}").body
  end

  def test_a_server_that_is_asked_to_end
    server = serve_slowly("public")
    waiting = hang(server, "/stuck.txt", :look_up)
    server.signal(:TERM)
    wait_until("the end of accepting") { refused?(server) }
    @disk.release

    assert_file "stuck", waiting.answer
    assert_equal 0, server.wait_exit.exitstatus
  end

  def test_a_process_that_the_application_forks
    server = serve_slowly("public/mounted")
    waiting = hang(server, "/mounted/stuck.txt", :look_up)

    assert_equal "7", get(server, "/?fork").body
    @disk.release

    assert_file "stuck", waiting.answer
  end

  private

  # Starts a server with a slow disk at +place+. The block gets the server once the disk exists.
  def serve_slowly(place, files = {}, *arguments, **how)
    serve_folder(files, "--public", "public", "--threads", "2:2", *arguments, app: APP) do |server|
      FileUtils.mkdir_p(server.path(place))
      @disk = Fairlead::Test::SlowDisk.new(server.path(place), FILES, **how)
      yield server if block_given?
    end
  rescue Fairlead::Test::SlowDisk::Unavailable => e
    skip e.message
  end

  # Starts a server with an overlayfs at +place+ and a slow disk beneath it, and requests each file once. The block returns
  # the target for the path of a file.
  def serve_overlay(place, *arguments)
    server = serve_slowly("layer", {}, *arguments, keep_names: 3600) { |one| @disk.lay_beneath(one.path(place)) }
    FILES.each do |name, content|
      target = block_given? ? yield(server.path("#{place}/#{name}")) : "/#{name}"
      2.times { assert_equal content, get(server, target).body, name }
    end
    server
  end

  # Returns a client with a hanging request for that file.
  def hang(server, target, kind)
    @disk.stick(kind, target[/\w+\.\w+\z/])
    client = connect(server)
    client.write("GET #{target} HTTP/1.1\r\nhost: test\r\n\r\n")
    @disk.wait_until_held
    client
  end

  # There is no sign of an event that has not happened: no request was refused.
  def wait_for_time(seconds)
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    wait_until("#{seconds} s to pass") { Process.clock_gettime(Process::CLOCK_MONOTONIC) - began > seconds }
  end

  # Asserts that each file is served while the other request still hangs.
  def others_are_served(server, *files)
    client = connect(server)
    3.times do
      files.each { |path| assert_equal 200, client.get(path).status, path }
      assert_from_app client.request("POST", "/cart", {}, body: "a").answer
      assert_from_app client.get("/cart")
    end
    assert_operator @disk.held, :>=, 1, "the request must hang"
  end
end
