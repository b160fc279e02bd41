# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"

# Clients that disconnect at every point of a request: the body is closed, all descriptors are free again, and the next
# client is served.
class VanishingClientTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  APP = <<~RUBY
    PIECE = "x" * 100_000
    class Pieces
      def initialize(count, pause) = (@count, @pause = count, pause)
      def each = @count.times { sleep(@pause); yield PIECE }
      def close = $stderr.write("body closed\n")
    end
    run lambda { |env|
      case env["PATH_INFO"]
      when "/large" then [200, {}, Pieces.new(200, 0)]
      when "/slow" then [200, {}, Pieces.new(1_000_000, 0.02)]
      when "/stream"
        [200, {}, ->(stream) { 1000.times { stream.write(PIECE) and sleep(0.01) } rescue $stderr.write("\#{$!.class.ancestors}\n") }]
      when "/sleep" then sleep(0.5) and [200, {}, ["late"]]
      else [200, {}, [env["rack.input"].read.bytesize.to_s]]
      end
    }
  RUBY

  def test_the_body_is_closed_when_the_client_is_gone_before_its_answer_is_taken
    leaves_nothing_open do |server|
      5.times { connect(server).request("GET", "/large").reset }
      wait_until("5 closed bodies") { server.stderr.scan("body closed").size == 5 }
    end
  end

  def test_an_answer_that_is_being_made_ends_early_and_is_closed
    leaves_nothing_open do |server|
      client = connect(server)
      client.request("GET", "/slow").readable?(10)
      client.reset
      server.wait_for_output(/body closed/)
    end
  end

  def test_a_stream_hears_with_an_io_error_that_its_client_is_gone
    leaves_nothing_open do |server|
      client = connect(server)
      client.request("GET", "/stream").readable?(10)
      client.reset

      assert_includes server.wait_for_output(/Error.*/)[0], "IOError"
    end
  end

  def test_a_client_that_goes_while_its_request_runs_leaves_nothing_behind
    leaves_nothing_open do |server|
      5.times { connect(server).request("GET", "/sleep").reset }
      connect(server).request("GET", "/sleep").close

      assert_equal "0", get(server).body
    end
  end

  def test_clients_that_go_within_a_head_or_a_body_leave_nothing_behind
    leaves_nothing_open do |server|
      ["", "GET", "GET / HTTP/1.1\r\nhost: t", "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\n1234",
       "POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab",
       "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 900000\r\n\r\n#{"x" * 500_000}"].each do |beginning|
        connect(server).write(beginning).close
        connect(server).write(beginning).reset
      end
    end
  end

  def test_a_client_that_says_it_has_no_more_to_send_still_gets_its_answer
    leaves_nothing_open do |server|
      client = connect(server).request("GET", "/sleep")
      client.half_close

      assert_equal "late", client.answer.body
      client.close
    end
  end

  private

  # Yields a server; in the end it has no more open descriptors than at first, serves, and has logged no fault.
  def leaves_nothing_open
    server = serve(APP, "-t", 5)
    Array.new(5) { connect(server).request("GET", "/sleep") }.each { |client| client.answer && client.close }
    wait_until("a quiet server") { quiet?(server) }
    before = descriptors(server.serving_pid)
    yield server

    assert_equal "3", ask(server, "POST", "/", {}, "abc").body
    wait_for_closed_descriptors(server.serving_pid, before)
    refute_match(/BUG|error in the application/, server.stderr)
  end

  # Returns true if the server has no connection.
  def quiet?(server)
    Dir.children("/proc/#{server.serving_pid}/fd").none? do |fd|
      link = File.readlink("/proc/#{server.serving_pid}/fd/#{fd}")
      link.start_with?("socket:") && connected?(link)
    rescue Errno::ENOENT
      false
    end
  end

  def connected?(link)
    inode = link[/\d+/]
    File.readlines("/proc/net/tcp").any? { |line| line.split.then { |fields| fields[9] == inode && fields[3] != "0A" } }
  end
end
