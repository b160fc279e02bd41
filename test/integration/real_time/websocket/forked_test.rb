# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# A process that the application has forked shares the socket of each client. In that process, all clients are closed.
class ForkedClientTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  CALLS = <<~RUBY
    def on_message(client, text)
      results = IO.popen("-") do |io|
        next io.read if io

        print [client.open?, client.pending, client.timeout, client.write("from the child"), client.close,
               client.subscribe("news"), client.unsubscribe("news"), (client.handler = nil)].inspect
        $stdout.flush
        exit!
      end
      client.write("\#{client.open?} \#{results}")
    end
  RUBY

  def test_a_client_is_closed_in_a_child_and_stays_open_in_the_parent
    client = web_socket(pushing(CALLS))

    3.times { assert_equal [:text, "true [false, -1, nil, false, nil, nil, nil, nil]"], client.send_text("fork").receive }
  end
end
