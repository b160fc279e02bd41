# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/web_socket"

# With `fair_by`, callbacks of WebSockets use the turns of the flow that has opened them: many WebSockets do not get more
# time.
class FairByClientsTest < Minitest::Test
  include Fairlead::Test::Servers

  SOCKETS = 60
  MESSAGES = 60
  SINGLES = 5
  SHARE = 0.8

  # Each message and each request works for 20 ms.
  APP = <<~RUBY
    class Echo
      def on_message(client, data)
        sleep 0.02
        client.write(data)
      end
    end
    run lambda { |env|
      env["rack.upgrade"] = Echo.new if env["rack.upgrade?"]
      sleep 0.02 unless env["rack.upgrade?"]
      [200, {}, ["."]]
    }
  RUBY

  def test_a_crowd_of_web_sockets_leaves_the_others_their_share
    server = serve(APP, "-t", 3, "--fair-by", "ip")
    crowd = crowd(server)
    singles = (1..SINGLES).map { |number| Socket.tcp("127.0.0.1", server.port, "127.0.0.#{number + 1}", 0) }
    crowd.each { |client| MESSAGES.times { client.send_text(".") } }
    singles.each { |socket| ask(socket) }
    shares = shares(crowd.map(&:socket), singles)

    assert_operator shares.min, :>=, SHARE, shares.inspect
  ensure
    [*singles, *crowd&.map(&:socket)].each(&:close)
  end

  private

  def crowd(server) = Array.new(SOCKETS) { Fairlead::Test::WebSocket.connect("127.0.0.1", server.port) }

  def ask(socket) = socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

  # Share of each single client, as a multiple of an equal share. Ends when all have enough, or the crowd has nothing more to
  # send.
  def shares(crowd, singles)
    events = 0
    requests = singles.to_h { |socket| [socket, 0] }
    current = -> { requests.values.map { |count| (count * (SINGLES + 1)).fdiv(events + requests.values.sum).round(2) } }
    until events > SOCKETS * MESSAGES / 2 || (events > SOCKETS && current.call.min >= SHARE)
      ready, = IO.select(crowd + singles, nil, nil, 10)
      raise "no response" unless ready

      ready.each do |socket|
        answer = socket.readpartial(10_000)
        next events += answer.count(".") unless requests.key?(socket)

        requests[socket] += 1
        ask(socket)
      end
    end
    current.call
  end
end
