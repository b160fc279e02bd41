# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/notify_socket"

# Notifications of a real server to systemd, on a notify socket of the test.
class SystemdProcessTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  APP = "run ->(env) { [200, {}, ['hello']] }"

  def setup
    @folder = Dir.mktmpdir("fairlead-test-")
    @socket = Fairlead::Test::NotifySocket.new("#{@folder}/notify")
  end

  def teardown
    @socket.close
    FileUtils.rm_rf(@folder)
  end

  def watched(*flags, environment: {}, **options)
    serve(APP, *flags, environment: { "NOTIFY_SOCKET" => "#{@folder}/notify", **environment }, **options)
  end

  def wait_for_events(*events) = wait_until(events.inspect) { @socket.events == events }

  [["without_workers", []], ["with_workers", ["-w", "2"]]].each do |name, flags|
    define_method(:"test_it_is_told_when_the_server_is_ready_and_when_it_ends_#{name}") do
      server = watched(*flags)
      wait_for_events("READY=1")
      server.stop

      wait_for_events("READY=1", "STOPPING=1")
    end

    define_method(:"test_a_hot_restart_is_a_reload_#{name}") do
      server = watched(*flags, *FLAGS)
      wait_for_events("READY=1")
      ctl("-S", server.path(STATE), "--wait", "restart")
      wait_until("the end of the reload") { @socket.events.last(2) == %w[RELOADING=1 READY=1] }

      assert_match(/\ARELOADING=1\nMONOTONIC_USEC=\d+\z/, @socket.messages.grep(/RELOADING/).first)
    end
  end

  def test_a_phased_restart_is_a_reload_even_if_it_fails
    server = watched("-w", "2")
    wait_for_events("READY=1")
    server.write("config.ru", "raise 'no luck'")
    server.signal(:USR1)
    wait_for_events("READY=1", "RELOADING=1", "READY=1")

    wait_until("the reason") { @socket.statuses.last&.match?(/last restart failed: config\.ru:1: no luck/) }
  end

  def test_it_is_told_in_words_how_the_server_does
    watched("-w", "2", "-t", "3:3")

    wait_until("a text") { @socket.statuses.last == "ready: 2/2 workers, 0/6 threads busy, 0 requests waiting" }
  end

  [["without_workers", []], ["with_workers", ["-w", "1"]]].each do |name, flags|
    define_method(:"test_the_watchdog_hears_of_the_server_#{name}") do
      watched(*flags, environment: { "WATCHDOG_USEC" => "200000" })

      wait_until("signs of life") { @socket.read.messages.count("WATCHDOG=1") > 3 }
    end
  end

  def test_an_abstract_socket_will_do
    socket = Fairlead::Test::NotifySocket.new("@fairlead-test-#{$$}")
    serve(APP, environment: { "NOTIFY_SOCKET" => "@fairlead-test-#{$$}" })

    wait_until("readiness") { socket.events == ["READY=1"] }
  ensure
    socket&.close
  end

  def test_listeners_in_its_store_take_connections_while_no_server_runs
    server = watched("--systemd-store")
    wait_until("the listener") { @socket.events.include?("FDSTORE=1") }
    port = server.port
    listener = Socket.for_fd(@socket.ios.first.fileno)
    server.stop
    client = adopt(TCPSocket.new("127.0.0.1", port)).request # it waits in the kernel

    spawn_with_listener(listener, port)

    assert_equal "hello", client.answer.body
  ensure
    listener&.autoclose = false
  end

  # Starts a server like systemd, with the listener as descriptor 3.
  def spawn_with_listener(listener, port)
    File.write("#{@folder}/config.ru", APP)
    start = "ENV['LISTEN_PID'] = Process.pid.to_s; exec(#{RbConfig.ruby.inspect}, #{File.join(ROOT, "exe/fairlead").inspect}, *ARGV, 3 => 3)"
    @pid = Process.spawn({ "LISTEN_FDS" => "1", "LISTEN_FDNAMES" => "fairlead", "RUBYLIB" => File.join(ROOT, "lib") }, RbConfig.ruby, "-e", start,
                         "--", "-b", "tcp://127.0.0.1:#{port}", chdir: @folder, 3 => listener.fileno, out: File::NULL)
  end

  def after_teardown
    super
  ensure
    Process.kill(:KILL, @pid) && Process.wait(@pid) if @pid
  end
end
