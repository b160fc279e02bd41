# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# A thread that is killed while it runs a request ends, even if other code still has to run on it, and another thread
# replaces it.
class KilledThreadTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = <<~'RUBY'
    class Deadly < StandardError
      def message = Thread.current.kill
    end

    run(lambda do |env|
      case env["PATH_INFO"]
      when "/late" then (env["rack.after_reply"] << -> { raise "late" }) && Thread.current.kill
      when "/rescued" then (env["rack.after_reply"] << -> { Integer("x") rescue 0 }) && Thread.current.kill
      when "/logged" then raise Deadly
      end
      [200, { "content-type" => "text/plain" }, [Thread.current.name]]
    end)
  RUBY

  def test_what_runs_after_it_and_raises_does_no_harm
    assert_replaced("/late", log: /late \(RuntimeError\)/)
  end

  def test_what_runs_after_it_and_rescues_does_no_harm
    assert_replaced("/rescued", log: /thread fairlead \d+ was killed; another one takes its place/)
  end

  def test_a_thread_that_is_killed_while_an_exception_is_logged_ends
    assert_replaced("/logged")
  end

  private

  def assert_replaced(path, log: //)
    server = serve(APP, "-t", "1:1", "-e", "production")
    before = get(server).body
    3.times { end_of(connect(server).request("GET", path)) }

    refute_equal before, get(server).body
    assert_predicate server, :running?
    assert_logged(log, server)
  end

  # There may or may not be a response.
  def end_of(client)
    client.answer
  rescue Fairlead::Test::HttpClient::CutOff
    nil
  end
end
