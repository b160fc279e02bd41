# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/processes"
require "support/real_time"

# Clients that close their sending side behind the request, like `nc -N`, and wait for a response that continues after the
# application has returned: they get all of it. The server detects clients that have closed their socket.
class HalfClosingClientTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Processes
  include Fairlead::Test::Secured

  parallelize_me!

  APP = <<~RUBY
    class Handler
      def on_open(client)
        Thread.new { sleep 0.01 until File.exist?("go"); client.write("late"); client.close }
      end
      def on_close(_client) = File.write("closed", "")
    end
    run lambda { |env|
      next (env["rack.upgrade"] = Handler.new) && [200, {}, []] if env["rack.upgrade?"]

      [200, {}, ->(stream) { Thread.new { sleep 0.01 until File.exist?("go"); stream.write("late"); stream.close } }]
    }
  RUBY

  # Requested path, and the end of the body. The client gets no byte of the body before it closes its sending side.
  KINDS = {
    "GET /stream HTTP/1.1\r\nhost: a\r\n\r\n" => "4\r\nlate\r\n0\r\n\r\n",
    "GET /stream HTTP/1.0\r\n\r\n" => "late",
    "GET /events HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n" => "c\r\ndata: late\n\n\r\n0\r\n\r\n",
    "GET /events HTTP/1.0\r\naccept: text/event-stream\r\n\r\n" => "data: late\n\n"
  }.freeze

  def test_the_rest_of_the_response_reaches_a_client_that_has_ended_its_half
    KINDS.each do |request, expected|
      server = serve(APP)
      client = connect(server).write(request)
      client.half_close
      wait_until("the end of the client's half") { half_closed?(server) }
      server.write("go", "")
      assert_equal expected, body(client.rest), request
    end
  end

  def test_it_reaches_a_client_over_tls
    KINDS.each do |request, expected|
      server = serve_tls(APP)
      socket = tls_socket(server.port)
      socket.write(request)
      socket.__send__(:stop) # close_notify
      socket.to_io.close_write
      wait_until("the end of the client's half") { half_closed?(server) }
      server.write("go", "")
      assert_equal expected, body(socket.read), request
    end
  end

  def test_an_event_stream_whose_client_has_gone_is_closed_at_once
    server = serve(APP)
    client = connect(server).write(KINDS.keys[2])
    client.read_through("\r\n\r\n")
    client.close

    wait_until("the end of the event stream") { File.exist?(server.path("closed")) }
  end

  # The client may have gone, and the application may write nothing for hours.
  def test_the_kernel_asks_a_client_of_a_stream_whether_it_is_still_there
    KINDS.keys.first(2).each do |request|
      server = serve(APP)
      client = connect(server).write(request)
      client.read_through("\r\n\r\n")
      client.half_close

      wait_until("a timer of the system for #{request}") { connections(server).any? { |fields| fields[3] == "08" && fields[5].start_with?("02:") } }
    end
  end

  private

  # Body of a response without comments, and without the time for reconnecting.
  def body(response)
    response.split("\r\n\r\n", 2).last.gsub(/(\h+\r\n)?(: ping|retry: ?\d+)\n\n(\r\n)?/, "")
  end

  # Returns true if a connection of the server is in CLOSE_WAIT.
  def half_closed?(server) = connections(server).any? { |fields| fields[3] == "08" }

  # Sockets of the server's address, from the system's list.
  def connections(server)
    local = format(":%04X", server.port)
    File.readlines("/proc/net/tcp").map(&:split).select { |fields| fields[1].end_with?(local) }
  end
end
