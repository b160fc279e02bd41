# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"

# Time slices of servers inside another program: several in one process, one that starts again, one in a daemon, one in the
# child of a process that serves. The test compares counts of one program, with slices and without, never times.
class SlicesInProgramsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  # /compute runs until there is a request for /stop.
  PROGRAM = <<~RUBY
    require "fairlead"
    $stdout.sync = true
    $stop = false
    APP = lambda do |env|
      case env["PATH_INFO"]
      when "/wait" then 5.times { sleep 0.001 }
      when "/start" then 5.times { Thread.new { nil } && sleep(0.001) }
      when "/compute"
        warn("computes")
        nil until $stop
      when "/stop" then $stop = true
      end
      [200, {}, []]
    end
    SLICE = Float(ENV.fetch("SLICE"))

    def server(**options)
      Fairlead::Server.new(APP, bind: "tcp://127.0.0.1:0", threads: [3, 3], time_slice: SLICE, **options).start
    end

    def say(*servers)
      servers.each { |server| puts "listening on \#{server.addresses.first}" }
      puts "fairlead inside ready"
      sleep
    end
  RUBY

  def test_two_servers_of_a_process
    assert_more_turns("say(server, server)") { |server| adopt(TCPSocket.new("127.0.0.1", server.ports.last)) }
  end

  def test_one_of_two_servers_has_slices_and_the_other_one_computes
    assert_more_turns("say(server, server(time_slice: 0))") { |server| adopt(TCPSocket.new("127.0.0.1", server.ports.last)) }
  end

  def test_a_server_that_has_ended_and_starts_again
    assert_more_turns(<<~RUBY)
      servers = Array.new(2) { server }
      servers.each { |server| server.stop(1) }
      servers.first.start
      say(servers.first)
    RUBY
  end

  # The threads want the lock when the extension begins to count waiting threads.
  def test_a_program_whose_threads_wait_for_the_lock_while_the_extension_is_loaded
    assert_more_turns(<<~RUBY)
      loaded = false
      threads = Array.new(3) { Thread.new { nil until loaded } }
      Fairlead::Native
      loaded = true
      threads.each(&:join)
      say(server)
    RUBY
  end

  # Ruby may take a starting thread for the computing one.
  def test_requests_that_start_threads
    assert_more_turns("say(server)", path: "/start")
  end

  # The daemon ends when the program that the test has started has ended.
  def test_a_server_in_a_daemon
    assert_more_turns(<<~RUBY)
      reader, writer = IO.pipe
      end_of_program, program = IO.pipe
      if fork
        writer.close
        puts reader.gets
        say
      end
      program.close
      Process.daemon(true, true)
      writer.puts("listening on \#{server.addresses.first}")
      end_of_program.read
    RUBY
  end

  def test_a_server_in_the_child_of_a_process_that_serves
    assert_more_turns(<<~RUBY)
      server
      2.times { Thread.new { nil until $stop } }
      fork { say(server) }
      sleep
    RUBY
  end

  private

  # Asserts five times as many turns with slices as without.
  def assert_more_turns(program, path: "/wait", &client)
    with, without = [0.005, 0].map { |slice| turns(launched(program, slice), path, &client) }

    assert_operator with, :>=, 5 * without
  end

  def launched(program, slice)
    files = { "program.rb" => PROGRAM + program }
    own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: files, environment: { "SLICE" => slice.to_s })).start
  end

  # Number of waiting requests with a response within a second, while another one computes, perhaps in another server.
  def turns(server, path)
    (block_given? ? yield(server) : connect(server)).request("GET", "/compute")
    server.wait_for_output(/computes/)
    client = connect(server)
    ending = monotonic + 1
    count = 0
    while monotonic < ending
      assert_equal 200, client.get(path).status
      count += 1
    end
    connect(server).get("/stop")
    count
  end
end
