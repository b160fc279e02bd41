# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"

# Facts about processes, for tests (test/support/processes.rb).
class ProcessesTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  # Gives more than the socket of a client takes, and ends once there is a file.
  APP = <<~RUBY
    run lambda { |env|
      next [200, {}, ["ok"]] if env["PATH_INFO"] == "/"
      [200, {}, Enumerator.new { |out| out << "x" * 10_000_000; sleep 0.01 until File.exist?("go") }]
    }
  RUBY

  def test_a_thread_that_stays_is_no_descriptor_that_is_left_behind
    server = serve(APP)
    pid = server.serving_pid
    get(server, "/")
    before = wait_until("a quiet server") { clients(pid, server.port).empty? && descriptors(pid) }
    client = narrow_client(server).request("GET", "/slow")
    wait_until("the thread") { thread_names(pid).include?(Fairlead::Test::Processes::BODY_SENDER) }
    assert_operator descriptors(pid), :>, before
    server.write("go", "")
    assert_equal 10_000_000, client.answer.body.bytesize
    client.close

    wait_for_closed_descriptors(pid, before)
    assert_equal before, descriptors(pid)
  end

  def test_descriptors_that_stay_open_are_named
    File.open(__FILE__) do
      error = assert_raises(Fairlead::Test::Waiting::Expired) { wait_for_closed_descriptors(Process.pid, 0, seconds: 0) }

      assert_match(/at most 0 descriptors, not .*#{__FILE__}/, error.message)
    end
  end
end
