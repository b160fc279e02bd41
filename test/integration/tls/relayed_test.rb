# frozen_string_literal: true

require "test_helper"
require "support/certificates"

# A response that one worker makes for another worker's connection, while one of them or the client ends.
class TlsRelayedTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Secured

  # "/hold" keeps its worker's only thread. "/half" sends half of a body without a length, so only the end of the connection
  # ends it; the rest follows when the file "go" exists, repeatedly if demanded.
  APP = <<~RUBY
    note = ->(name, text) { File.write(name + ".new", text); File.rename(name + ".new", name) }
    wait = -> { sleep 0.01 until File.exist?("go") }
    half = Class.new do
      define_method(:initialize) { |rest| @rest = rest }
      define_method(:each) do |&block|
        block.call("half of it")
        note.call("half", Process.pid.to_s)
        wait.call
        @rest.times { block.call(" and the rest" * 1000); sleep 0.01 if @rest > 1 }
      end
    end
    run lambda { |env|
      if env["PATH_INFO"] == "/hold"
        note.call("held", Process.pid.to_s)
        wait.call
        next [200, {}, ["held"]]
      end
      (env["rack.response_finished"] ||= []) << ->(*, error) { note.call("finished", error.class.name) }
      [200, {}, half.new(Integer(env["QUERY_STRING"], 10))]
    }
  RUBY
  ENDLESS = 100_000

  def setup
    super
    @server = serve_tls(APP, "-w", 2, "-t", "1:1")
    sockets = Array.new(12) { tls_socket(@server.port) }
    ask(sockets.first, "/hold")
    @owner = noted("held")
    @holding = sockets.shift
    @client = sockets.find { |socket| owner(socket) == @owner } || flunk("no connection is at that worker")
  end

  def test_a_response_comes_whole
    begin_half(1)
    FileUtils.touch(@server.path("go"))

    assert_operator @client.read, :end_with?, "half of it#{" and the rest" * 1000}"
    assert_equal "NilClass", wait_for_file("finished")
    assert_held
  end

  def test_a_client_sees_that_the_worker_that_made_the_response_was_killed
    killed = begin_half(1)
    Process.kill(:KILL, killed)

    assert_broken_off
    FileUtils.touch(@server.path("go"))

    assert_held
    assert_includes @server.worker_pids, @owner
  end

  def test_a_client_sees_that_its_own_worker_was_killed_and_so_does_the_application
    begin_half(ENDLESS)
    Process.kill(:KILL, @owner)

    assert_broken_off
    FileUtils.touch(@server.path("go"))

    refute_equal "NilClass", wait_for_file("finished")
  end

  def test_the_application_sees_that_the_client_has_gone
    begin_half(ENDLESS)
    @client.to_io.close
    FileUtils.touch(@server.path("go"))

    refute_equal "NilClass", wait_for_file("finished")
    assert_held
  end

  private

  def ask(socket, target, version = "1.1") = socket.write("GET #{target} HTTP/#{version}\r\nhost: localhost\r\n\r\n")

  # Starts the response, and returns the process that makes it.
  def begin_half(rest)
    ask(@client, "/half?#{rest}", "1.0")
    maker = noted("half")

    refute_equal @owner, maker
    @client.readpartial(10)
    maker
  end

  def assert_broken_off
    error = assert_raises(OpenSSL::SSL::SSLError, SystemCallError) { @client.read }

    refute_kind_of Errno::ETIMEDOUT, error
  end

  def assert_held = assert_operator(@holding.readpartial(1000), :start_with?, "HTTP/1.1 200 OK\r\n")

  def wait_for_file(name)
    wait_until("the file #{name}") { File.exist?(@server.path(name)) }
    File.read(@server.path(name))
  end

  def noted(name) = Integer(wait_for_file(name), 10)

  # Worker at the other end of a connection.
  def owner(socket)
    port = format(":%04X", socket.to_io.local_address.ip_port)
    line = File.readlines("/proc/net/tcp").map(&:split).find { |fields| fields[2].end_with?(port) && fields[3] == "01" }
    name = "socket:[#{line[9]}]"
    @server.worker_pids.find { |pid| Dir["/proc/#{pid}/fd/*"].any? { |path| link(path) == name } }
  end

  def link(path)
    File.readlink(path)
  rescue Errno::ENOENT
    nil
  end
end
