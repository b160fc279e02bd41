# frozen_string_literal: true

require "test_helper"
require "support/control"
require "support/supervision"

# The health endpoints beside clients that connect and send nothing.
class HealthBesideSilenceTest < Minitest::Test
  include Fairlead::Test::Supervision
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  URL = /health endpoints on (tcp:\S+)/
  SECONDS = 8
  RATES = [10, 40].freeze

  SHAPES.each do |name, workers|
    RATES.each do |rate|
      define_method(:"test_#{rate}_silent_connections_a_second_delay_no_probe_#{name}") do
        server = supervised(workers, "--health-url", "tcp://127.0.0.1:0")
        url = server.wait_for_output(URL)[1]
        answers = []
        while_silent_clients_come(Integer(url[/\d+\z/], 10), rate) do
          over = monotonic + SECONDS
          until monotonic > over
            since = monotonic
            answers << [control(server, "/ready", url: url).status, monotonic - since]
          end
        end

        assert_equal [200], answers.map(&:first).uniq
        assert_operator answers.map(&:last).max, :<, 1
      end
    end
  end

  private

  # Opens a connection every 1 / +rate+ s while the block runs.
  def while_silent_clients_come(port, rate)
    over = false
    clients = []
    thread = Thread.new do
      until over
        clients << TCPSocket.new("127.0.0.1", port)
        sleep(1.0 / rate)
      end
    end
    yield
  ensure
    over = true
    thread.join
    clients.each(&:close)
  end
end
