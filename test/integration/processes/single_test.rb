# frozen_string_literal: true

require "test_helper"
require "net/http"

# A server without workers, as a process.
class SingleTest < Minitest::Test
  include Fairlead::Test::Servers

  HELLO = "run ->(env) { [200, {}, ['hello']] }"

  # Writes a file when it is inside, and responds once there is a file named "go".
  PATIENT = <<~RUBY
    run lambda { |_env|
      File.write("inside", "")
      sleep 0.01 until File.exist?("go")
      [200, {}, ["finished"]]
    }
  RUBY

  %i[TERM INT HUP].each do |signal|
    define_method(:"test_#{signal}_while_a_request_runs_finishes_it") do
      server = serve(PATIENT)
      answer = request_in(server)
      server.signal(signal)
      server.wait_for_output(/#{signal}: finishing/)
      server.write("go", "")

      assert_equal "finished", answer.value
      assert_equal 0, server.wait_exit.exitstatus
      assert_match(/fairlead stopped\n\z/, server.stdout)
      assert_empty server.stderr
    end
  end

  def test_a_second_int_cuts_off_what_still_runs
    server = serve(PATIENT)
    answer = request_in(server)
    server.signal(:TERM)
    server.wait_for_output(/TERM: finishing/)

    assert_equal 0, server.stop(:INT).exitstatus
    assert_equal :cut_off, answer.value
    assert_match(/INT: stopping at once/, server.stdout)
  end

  def test_quit_cuts_off_what_still_runs
    server = serve(PATIENT)
    answer = request_in(server)

    assert_equal 0, server.stop(:QUIT).exitstatus
    assert_equal :cut_off, answer.value
  end

  def test_what_takes_longer_than_the_shutdown_timeout_is_aborted
    server = serve(PATIENT, "--shutdown-timeout", "0.2")
    answer = request_in(server)

    assert_equal 0, server.stop.exitstatus
    assert_match(/503 Service Unavailable/, answer.value)
    assert_match(/did not finish within 0\.2 s/, server.stderr)
  end

  def test_hup_reopens_the_access_log
    server = serve(HELLO, "--access-log", "access.log")
    Net::HTTP.get(URI(server.url("/first")))
    wait_until("the first line") { File.read(server.path("access.log")).include?("/first") }
    File.rename(server.path("access.log"), server.path("access.log.1"))
    server.signal(:HUP)
    server.wait_for_output(/reopened the access log/)
    Net::HTTP.get(URI(server.url("/second")))

    wait_until("the second line") { File.read(server.path("access.log")).include?("/second") }
    refute_includes File.read(server.path("access.log.1")), "/second"
  end

  def test_a_request_log_may_be_printed
    server = serve(HELLO, "-v", "--access-log-format", "common")
    Net::HTTP.get(URI(server.url("/path?query")))

    server.wait_for_output(%r{^127\.0\.0\.1 - - \[.*\] "GET /path\?query HTTP/1\.1" 200 })
  end

  def test_quiet_prints_nothing
    server = launch(HELLO, "-q", bind: "unix://server.sock")
    wait_until("a response") { answer_on(server.path("server.sock")) }
    server.stop

    assert_equal ["", ""], [server.stdout, server.stderr]
  end

  def test_the_pid_file_is_there_while_it_runs
    server = serve(HELLO, "--pidfile", "server.pid")

    assert_equal "#{server.pid}\n", File.read(server.path("server.pid"))
    server.stop
    refute_path_exists server.path("server.pid")
  end

  def test_a_second_server_with_the_pid_file_of_the_first_is_refused
    first = serve(HELLO, "--pidfile", "server.pid")
    second = launch(HELLO, "--pidfile", first.path("server.pid"))

    assert_equal 1, second.wait_exit.exitstatus
    assert_equal "fairlead: pid file #{first.path("server.pid")}: process #{first.pid} is running\n", second.stderr
  end

  def test_hooks_run_at_their_points
    hooks = %w[after_booted before_thread_start before_thread_exit after_stopped].map { |name| "#{name} { File.write('#{name}', '') }\n" }.join
    server = serve(HELLO, "-t", "2", files: { "config/fairlead.rb" => hooks })
    wait_until("the hooks of the start") { %w[after_booted before_thread_start].all? { |name| File.exist?(server.path(name)) } }
    refute_path_exists server.path("after_stopped")
    server.stop

    assert_path_exists server.path("before_thread_exit")
    assert_path_exists server.path("after_stopped")
  end

  def test_the_title_names_address_and_tag
    server = serve(HELLO, "--tag", "shop")

    assert_match(/\Afairlead \S+ \(tcp:\S+\) \[shop\]/, File.read("/proc/#{server.pid}/cmdline"))
  end

  def test_the_application_runs_in_its_environment_and_folder
    server = serve(nil, "--dir", "app", "-e", "production",
                   files: { "app/config.ru" => "run ->(_) { [200, {}, [\"\#{ENV['RACK_ENV']} \#{Dir.pwd}\"]] }" })

    assert_equal "production #{server.path("app")}", Net::HTTP.get(URI(server.url))
  end

  def test_a_broken_application_is_one_message_and_a_failure
    server = launch("\nrun Missing\n")

    assert_equal 1, server.wait_exit.exitstatus
    assert_equal "fairlead: config.ru:2: uninitialized constant Missing (NameError)\n", server.stderr
  end

  def test_an_address_in_use_is_one_message_and_a_failure
    port = serve(HELLO).port
    second = launch(HELLO, bind: "tcp://127.0.0.1:#{port}")

    assert_equal 1, second.wait_exit.exitstatus
    assert_equal "fairlead: cannot listen on tcp://127.0.0.1:#{port}: the address is in use\n", second.stderr
  end

  def test_term_while_the_application_is_loaded_ends_it
    server = launch("File.write('loading', '')\nsleep", "--pidfile", "server.pid")
    wait_until("the loading") { File.exist?(server.path("loading")) }

    assert_equal 143, server.stop(:TERM).exitstatus
    assert_empty server.stderr
    refute_path_exists server.path("server.pid")
  end

  private

  # Response of the server on a Unix socket, or nil if there is none.
  def answer_on(path)
    UNIXSocket.open(path) do |socket|
      socket.write("GET / HTTP/1.0\r\n\r\n")
      socket.read
    end
  rescue SystemCallError
    nil
  end

  # Starts a request, and returns when it is inside the application; its value is the response, or :cut_off.
  def request_in(server)
    thread = Thread.new do
      Net::HTTP.start("127.0.0.1", server.port, max_retries: 0) { |http| http.get("/").body }
    rescue EOFError, SystemCallError
      :cut_off
    end
    wait_until("the request") { File.exist?(server.path("inside")) }
    thread
  end
end
