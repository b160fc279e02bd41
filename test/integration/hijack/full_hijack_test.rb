# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"
require "support/rack_apps"

# Full hijack (Rack SPEC, "Hijacking"): the application takes the socket, and the server closes its own copy.
class FullHijackTest < Minitest::Test
  include Fairlead::Test::HttpServing
  include Fairlead::Test::Processes

  parallelize_me!

  # Takes the socket and echoes each line until the end.
  ECHO = <<~'RUBY'
    io = env["rack.hijack"].call
    Thread.new do
      while (line = io.gets)
        io.write("you said #{line}")
      end
    ensure
      io.close
    end
  RUBY

  def test_the_application_gets_a_real_io
    server = serve(unlinted(<<~'RUBY'))
      offered = env["rack.hijack?"]
      io = env["rack.hijack"].call
      facts = [offered, io.is_a?(IO), io.fileno.class, io.to_io.equal?(io), env["rack.hijack_io"].equal?(io), io.closed?, io.sync,
               io.read_nonblock(10, exception: false), io.write_nonblock("first|", exception: false)]
      io.write("#{facts.inspect}|")
      io.close
      [-1, {}, []]
    RUBY

    assert_equal "first|#{[true, true, Integer, true, true, false, true, :wait_readable, 6].inspect}|", connect(server).request.rest
  end

  def test_what_the_client_has_sent_behind_its_request_is_not_lost
    server = serve(unlinted("#{ECHO}\n[-1, {}, []]"))
    client = connect(server).write("GET / HTTP/1.1\r\nhost: a\r\n\r\nfirst\nsec")
    assert_equal "you said first\n", client.read_through("\n")
    client.write("ond\n")

    assert_equal "you said second\n", client.read_through("\n")
  end

  # 200,000 bytes are more than the server reads at once.
  def test_nor_when_it_is_much
    server = serve(unlinted("#{ECHO}\n[-1, {}, []]"))
    lines = (0...20_000).map { |number| format("%09d\n", number) }
    client = connect(server)
    sender = Thread.new { client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n#{lines.join}").half_close }

    assert_equal lines.map { |line| "you said #{line}" }.join, client.rest
    sender.join
  end

  def test_what_is_buffered_can_be_read_without_waiting
    server = serve(unlinted(<<~'RUBY'))
      io = env["rack.hijack"].call
      selected = IO.select([io], nil, nil, 5)
      io.write("#{[selected&.first == [io], io.read_nonblock(100, exception: false)].inspect}\n")
      io.close
      [-1, {}, []]
    RUBY

    assert_equal "#{[true, "ahead"].inspect}\n", connect(server).write("GET / HTTP/1.1\r\nhost: a\r\n\r\nahead").rest
  end

  ANSWERS = ["[-1, {}, []]", "[200, { 'x' => 'y' }, ['body']]", "[101, {}, []]", "nil", "raise('no')"].freeze

  def test_whatever_the_application_answers_is_not_sent
    ANSWERS.each do |answer|
      server = serve(unlinted("io = env['rack.hijack'].call; io.write('mine'); io.close; #{answer}"))

      assert_equal "mine", connect(server).request.rest, answer
      assert_equal "mine", connect(server).request.rest, answer
    end
  end

  def test_the_body_is_closed_and_what_follows_an_answer_runs
    server = serve(unlinted(<<~RUBY))
      env["rack.after_reply"] << -> { Notes.add("reply") }
      env["rack.response_finished"] << ->(*) { Notes.add("finished") }
      env["rack.hijack"].call.close
      [-1, {}, Rack::BodyProxy.new([]) { Notes.add("closed") }]
    RUBY

    assert_equal "", connect(server).request.rest
    assert_equal %w[closed reply finished], wait_for_notes(server, 3)
  end

  def test_no_time_out_of_the_server_applies
    server = serve(unlinted("#{ECHO}\n[-1, {}, []]"), "--keep-alive-timeout", 1, "--head-timeout", 1, "--write-timeout", 1)
    client = connect(server).request
    refute client.readable?(2.5)
    client.write("late\n")

    assert_equal "you said late\n", client.read_through("\n")
  end

  def test_requests_behind_it_belong_to_the_application
    server = serve(unlinted("#{ECHO}\n[-1, {}, []]"))
    client = connect(server).write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 2)

    assert_equal "you said GET / HTTP/1.1\r\n", client.read_through("\n")
  end

  def test_a_body_of_the_request_is_still_read_from_the_input
    server = serve(unlinted(<<~RUBY))
      io = env["rack.hijack"].call
      io.write(env["rack.input"].read + io.gets)
      io.close
      [-1, {}, []]
    RUBY

    assert_equal "bodyrest\n", connect(server).write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbodyrest\n").rest
  end

  def test_the_end_of_the_server_does_not_wait_for_it
    [["-t", 2], ["-w", 2]].each do |shape|
      server = serve(unlinted("#{ECHO}\n[-1, {}, []]"), *shape)
      client = connect(server).request.write("hello\n")
      client.read_through("\n")

      assert_ends_before_its_timeout server
      assert client.closed?
    end
  end

  def test_a_connection_of_keep_alive_can_be_taken
    server = serve(unlinted("next [200, {}, ['page']] if env['PATH_INFO'] == '/'\n#{ECHO}\n[-1, {}, []]"))
    client = connect(server)
    3.times { assert_equal "page", client.get.body }
    client.request("GET", "/take").write("hello\n")

    assert_equal "you said hello\n", client.read_through("\n")
  end

  def test_many_sockets_are_taken_from_one_thread
    server = serve(unlinted("#{ECHO}\n[-1, {}, []]"), "-t", 1)
    clients = Array.new(50) { connect(server).request }
    clients.each_with_index { |client, number| client.write("#{number}\n") }

    assert_equal (0...50).map { |number| "you said #{number}\n" }, clients.map { |client| client.read_through("\n") }
  end

  # With and without bytes that the server has read already.
  def test_nothing_is_left_of_sockets_that_are_closed
    server = serve(unlinted("#{ECHO}\n[-1, {}, []]"))
    connect(server).request.write("warm\n").read_through("warm\n")
    before = descriptors(server.serving_pid)
    clients = Array.new(30) { |number| connect(server).write("GET / HTTP/1.1\r\nhost: a\r\n\r\n#{"ahead\n" if number.odd?}") }
    clients.each { |client| client.write("hello\n").read_through("hello\n") }
    assert_operator descriptors(server.serving_pid), :>=, before + 30
    clients.each(&:close)

    wait_for_closed_descriptors(server.serving_pid, before)
  end

  def test_under_rack_lint
    server = serve(linted(<<~RUBY))
      io = env["rack.hijack"].call
      io.write("linted")
      io.close
      [200, { "content-type" => "text/plain" }, []]
    RUBY

    assert_equal "linted", connect(server).request.rest
  end
end
