# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# on_drained and pending: an application that produces faster than its client reads waits for the client without blocking a
# thread.
class DrainedTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  def test_on_drained_comes_after_what_was_written_is_sent
    server = pushing(<<~RUBY)
      def on_message(client, data) = client.write(data)
      def on_drained(client) = Notes.add(client.pending)
    RUBY
    client = web_socket(server)
    client.send_text("one").receive

    assert_equal "0", wait_for_notes(server, 1).last
  end

  # Writes the next piece when the previous one is sent: a stream of 40 MB that never needs more memory than a piece.
  PIECES = <<~'RUBY'
    PIECE = ("x" * 99_999).freeze

    def on_message(client, data)
      @left = data.to_i
      on_drained(client)
    end

    def on_drained(client)
      return if @left.nil? || @left.zero?

      @left -= 1
      Notes.add("dropped") unless client.write("#{@left % 10}#{PIECE}")
      Notes.add("done") if @left.zero?
    end
  RUBY

  def test_a_stream_of_pieces_waits_for_its_client
    server = pushing(PIECES, "-t", 1)
    client = slow_web_socket(server)
    client.send_text("400")
    3.times { assert_served(server) }
    assert_empty notes(server), "everything was written before the client read any of it"
    received = client.receive_all(400)

    assert_equal [*0..9] * 40, received.map { |piece| piece[0].to_i }.reverse
    assert_equal ["done"], wait_for_notes(server, 1)
  end

  def test_pending_counts_what_the_client_has_not_taken
    server = pushing(CONSOLE, "--client-pending-bytes", "64m")
    client = slow_web_socket(server)
    told(client, "@text = 'x' * 1_000_000; 1")
    client.send_text("30.times { client.write(@text) }; Notes.add(client.pending); @mark = true")

    assert_operator wait_for_notes(server, 1).first.to_i, :>, 0
    assert_equal [1_000_000] * 30, client.receive_all(30).map(&:size)
    client.receive
    wait_until("no pending bytes") { told(client, "client.pending") == "0" }
  end

  private

  # Returns a client with a tiny receive buffer.
  def slow_web_socket(server)
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, 4096)
    socket.connect(Addrinfo.tcp("127.0.0.1", server.port))
    adopt_web_socket(Fairlead::Test::WebSocket.over(socket))
  end
end
