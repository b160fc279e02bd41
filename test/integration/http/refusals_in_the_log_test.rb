# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# A client with thousands of bad requests cannot fill the disk: the log has some lines per second, and the number of further
# ones.
class RefusalsInTheLogTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  parallelize_me!

  COUNT = 1_500

  def test_a_burst_of_refused_requests_is_some_lines_and_a_count
    server = serve("run ->(_) { [200, {}, ['served']] }")
    COUNT.times { assert_equal 400, connect(server).write("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n").answer.status }
    wait_until("a line about each of them") { told(server).sum >= COUNT }

    assert_equal COUNT, told(server).sum
    assert_operator told(server).size, :<, COUNT / 2
    assert_equal "served", get(server).body
  end

  private

  # Number of refusals that each line reports.
  def told(server)
    server.stderr.lines.grep(/\Arefused 400 \(repeated host\) from 127\.0\.0\.1:\d+/).map { |line| 1 + line[/, and (\d+) more like this$/, 1].to_i }
  end
end
