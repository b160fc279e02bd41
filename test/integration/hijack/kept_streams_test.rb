# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/http_client"
require "support/processes"
require "support/rack_apps"

# Streaming bodies that keep their stream after #call has returned: another thread writes as fast as the client reads, and
# the thread of the request is free.
class KeptStreamsTest < Minitest::Test
  include Fairlead::Test::HttpServing
  include Fairlead::Test::Processes

  parallelize_me!

  PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".b

  def test_another_thread_goes_on_writing
    server = keeping("3.times { |n| sleep 0.01 until File.exist?(n.to_s); stream.write(n.to_s) }; stream.close")
    client = connect(server).request("GET", "/stream")
    client.read_through("\r\n\r\n")
    3.times do |number|
      assert_equal "plain", get(server).body
      server.write(number.to_s, "")
      assert_equal "1\r\n#{number}\r\n", client.read(6)
    end

    assert_equal "0\r\n\r\n", client.read(5)
    assert_equal "plain", client.get.body
  end

  def test_a_slow_client_holds_the_writer_back_and_nobody_else
    server = keeping("400.times { |n| stream.write(PIECE); Notes.add(n) }; stream.close",
                     "-t", 1, "--response-disk-bytes", "1m", "--write-timeout", 60, setup: "PIECE = ('x' * 100_000).freeze")
    get(server)
    before = memory(server.serving_pid)
    client = narrow_client(server).request("GET", "/stream")
    wait_for_notes(server, 1)
    10.times { assert_equal "plain", get(server).body }

    assert_operator notes(server).size, :<, 300
    assert_operator memory(server.serving_pid) - before, :<, 20_000_000
    assert_equal Digest::SHA256.hexdigest("x" * 40_000_000), Digest::SHA256.hexdigest(client.answer.body)
    assert_equal 400, wait_for_notes(server, 400).size
  end

  def test_writing_to_a_client_that_is_gone_raises_an_io_error
    server = keeping("loop { stream.write('x' * 10_000); sleep 0.01 } rescue Notes.add($!.is_a?(IOError))")
    client = connect(server).request("GET", "/stream")
    client.read_through("xxx")
    client.reset

    assert_equal ["true"], wait_for_notes(server, 1)
    assert_equal "plain", get(server).body
  end

  def test_a_writer_that_is_held_back_learns_that_its_client_is_gone
    server = keeping("loop { stream.write('x' * 100_000) } rescue Notes.add($!.is_a?(IOError))", "--response-disk-bytes", "1m", "--write-timeout", 60)
    client = narrow_client(server).request("GET", "/stream")
    client.read_through("xxx")
    client.reset

    assert_equal ["true"], wait_for_notes(server, 1)
  end

  def test_what_the_call_has_written_keeps_no_thread_while_its_client_does_not_read
    server = writing("stream.write('x' * 4_000_000)", "stream.write('the end'); stream.close")
    client = narrow_client(server).request("GET", "/stream")
    wait_for_notes(server, 1)
    3.times { assert_equal "plain", get(server).body }

    assert_equal "#{"x" * 4_000_000}the end", client.answer.body
    assert_equal "plain", client.get.body
  end

  def test_nor_does_it_with_a_window_that_stays_closed
    server = writing("stream.write('begin')", "stream.write('the end'); stream.close")
    request = "\x82\x86\x44\x07/stream\x41\x01a".b
    client = connect(server).write(PREFACE + window(0) + frame(1, 5, 1, request))
    wait_for_notes(server, 1)
    3.times { assert_equal "plain", get(server).body }
    client.write(window(100_000))
    received = client.read_through("the end")

    assert_operator received.index("begin"), :<, received.index("the end")
  end

  def test_a_client_that_goes_before_it_has_what_the_call_has_written
    server = writing("stream.write('x' * 4_000_000)", "begin; loop { stream.write('x' * 100_000) }; rescue IOError; Notes.add('gone'); end",
                     "--response-disk-bytes", "8m")
    client = narrow_client(server).request("GET", "/stream")
    wait_for_notes(server, 1)
    client.reset

    assert_equal %w[called gone], wait_for_notes(server, 2)
    assert_equal "plain", get(server).body
  end

  # No object can close the stream any more, and the garbage collector detects this. Its writer may have died, so the
  # response may be incomplete.
  def test_a_stream_that_nobody_holds_any_more_is_cut_off
    server = serve(unlinted(<<~RUBY))
      next [200, {}, [GC.start.inspect]] unless env["PATH_INFO"] == "/stream"

      [200, {}, ->(stream) { stream.write("all") }]
    RUBY
    client = connect(server).request("GET", "/stream")
    client.read_through("3\r\nall\r\n")
    wait_until("a run of the garbage collector") { get(server) && client.readable? }

    assert_empty client.rest
    assert_lost(server)
  end

  def test_a_stream_with_all_of_its_announced_length_is_complete_without_close
    server = serve(unlinted(<<~RUBY))
      next [200, {}, [GC.start.inspect]] unless env["PATH_INFO"] == "/stream"

      [200, { "content-length" => "6" }, ->(stream) { Thread.new { stream.write("all"); sleep 0.05; stream.write("all") } }]
    RUBY
    client = connect(server).request("GET", "/stream")
    client.read_through("allall")
    wait_until("a run of the garbage collector") { get(server) && server.stderr.empty? }

    assert_equal "nil", client.get.body
  end

  # --- writers that die: these tests make no garbage, so nothing starts the collector

  def test_a_stream_whose_writer_has_died_of_an_exception_is_cut_off
    server = keeping("Thread.current.report_on_exception = false; stream.write('part'); raise 'broken'")
    client = connect(server).request("GET", "/stream")
    client.read_through("part\r\n")

    assert_empty client.rest
    assert_lost(server)
  end

  def test_a_stream_whose_writer_was_killed_is_cut_off
    server = keeping("stream.write('part'); Thread.current.kill")
    client = connect(server).request("GET", "/stream")
    client.read_through("part\r\n")

    assert_empty client.rest
    assert_lost(server)
  end

  # A thread checks all the time; it ends with a message when it finds a dead stream.
  def test_only_streams_that_are_alive_are_looked_at
    server = keeping("stream.close", setup: "Thread.new { Fairlead::Native::Stream.left?(Thread.list) while sleep(0.001) }")
    clients = Array.new(4) { Thread.new { 500.times { connect(server).get("/stream") } } }
    clients.each(&:join)

    assert_empty server.stderr
  end

  # Without pauses, so that many searches find an owner.
  def test_a_stream_whose_last_owner_goes_late_is_cut_off
    searching = "{ INTERVAL: 0.01, LEAST_PAUSE: 0, PAUSE: 0 }.each { |name, value| Fairlead::KeptStreams.send(:remove_const, name); " \
                "Fairlead::KeptStreams.const_set(name, value) }"
    plain = "env['PATH_INFO'] == '/drop' ? ($kept = nil).to_s : GC.count.to_s"
    server = keeping("$kept = stream; stream.write('part'); Thread.current.kill", setup: searching, plain: plain)
    client = connect(server).request("GET", "/stream")
    client.read_through("part\r\n")
    begun = Integer(get(server).body, 10)
    wait_until("many searches") { Integer(get(server).body, 10) > begun + 5 }
    get(server, "/drop")

    assert_empty client.rest
    assert_lost(server)
  end

  def test_the_end_of_the_server_does_not_wait_for_a_stream_that_nobody_can_write_to
    server = keeping("Thread.current.report_on_exception = false; Notes.add('began'); raise 'broken'", "--shutdown-timeout", 600)
    client = connect(server).request("GET", "/stream")
    wait_for_notes(server, 1)
    server.signal(:TERM)

    assert client.rest.end_with?("\r\n\r\n"), "only a head"
    assert_equal 0, server.wait_exit.exitstatus
    assert_lost(server)
  end

  def test_a_stream_that_others_can_write_to_outlives_its_last_writer
    server = keeping("$kept = stream; stream.write('one'); Thread.current.kill",
                     plain: "GC.start; $kept&.write('two'); $kept&.close; 'plain'")
    client = connect(server).request("GET", "/stream")
    client.read_through("one\r\n")
    assert_equal "plain", get(server).body

    assert_equal "3\r\ntwo\r\n0\r\n\r\n", client.read(13)
    assert_empty server.stderr
  end

  # The list of the open streams is searched for ended ones when it is full, and then gets room for as many again: a search for every stream
  # would cost more than the rest of the request.
  def test_a_stream_costs_no_more_when_the_list_of_many_open_ones_is_nearly_full
    server = serve(unlinted(<<~RUBY), "-t", 1, "--max-connections", 3000)
      case env["PATH_INFO"]
      when "/open" then [200, {}, ->(stream) { ($kept ||= []) << stream }]
      when "/time" then [200, {}, [Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :microsecond).to_s]]
      else [200, {}, ->(stream) { Thread.new { stream.close } }]
      end
    RUBY
    open = []
    costs = [1500, 2047].map do |count|
      open << connect(server).request("GET", "/open").tap { |client| client.read_through("\r\n\r\n") } until open.size == count
      Array.new(3) { processor_time(server) }.min
    end

    assert_operator costs.last, :<, 2.5 * costs.first
  end

  def test_the_end_of_the_server_waits_for_it_as_for_any_answer
    server = keeping("Notes.add('began'); sleep 0.01 until File.exist?('go'); stream.write('whole'); stream.close")
    client = connect(server).request("GET", "/stream")
    wait_for_notes(server, 1)
    server.signal(:TERM)
    server.wait_for_output(/finishing open requests/)
    server.write("go", "")

    assert_equal "whole", client.answer.body
    assert_equal 0, server.wait_exit.exitstatus
  end

  private

  # Microseconds that the server computes for some streams.
  def processor_time(server)
    client = connect(server)
    before = Integer(client.get("/time").body, 10)
    200.times { client.get }
    Integer(client.get("/time").body, 10) - before
  end

  def assert_lost(server)
    wait_until("the line in the log") do
      server.stderr.match?(/\Aclosed a stream of 127.0.0.1:\d+: the application has lost the stream without closing it
\z/)
    end
  end

  # Starts a server with one thread that writes the beginning of a stream in the call, and the rest in another thread.
  def writing(beginning, rest, *arguments)
    serve(unlinted(<<~RUBY), "-t", 1, "--write-timeout", 60, *arguments)
      next [200, {}, ["plain"]] unless env["PATH_INFO"] == "/stream"

      [200, {}, ->(stream) { #{beginning}; Notes.add("called"); Thread.new { #{rest} } }]
    RUBY
  end

  def frame(kind, flags, stream, payload) = [payload.bytesize].pack("N")[1..] + [kind, flags, stream].pack("CCN") + payload

  # Returns SETTINGS that allow the server to send so many bytes of each stream.
  def window(bytes) = frame(4, 0, 0, [4, bytes].pack("nN"))

  # Starts a server that writes a stream with +code+ in its own thread, and responds to other requests at once with the
  # result of +plain+.
  def keeping(code, *arguments, setup: "", plain: "'plain'")
    serve(unlinted(<<~RUBY, setup: setup), *arguments)
      next [200, {}, [(#{plain})]] unless env["PATH_INFO"] == "/stream"

      [200, {}, ->(stream) { Thread.new { #{code} } }]
    RUBY
  end
end
