# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# Requests that run longer than request_timeout. The rules themselves are tested in crates/engine/tests/request_timeout.rs.
class RequestTimeoutTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  parallelize_me!

  # Waits until the file "go" exists, and notes its end.
  APP = <<~RUBY
    def wait_for_the_file
      sleep 0.02 until File.exist?("go")
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/hold"
        wait_for_the_file
        File.write("ended", "")
      when "/deadline"
        left = env["fairlead.deadline"] && (env["fairlead.deadline"] - Process.clock_gettime(Process::CLOCK_MONOTONIC))
        next [200, {}, [left.inspect]]
      when "/short"
        env["fairlead.request_timeout"].call(0.1)
        wait_for_the_file
      when "/longer"
        env["fairlead.request_timeout"].call(nil)
        sleep 0.4
      end
      [200, {}, ["served"]]
    }
  RUBY

  def go(server) = File.write(server.path("go"), "")

  def test_the_client_gets_a_504_and_the_log_the_backtrace_while_the_application_goes_on
    server = serve(APP, "-t", "2:2", "--request-timeout", "0.2", "--access-log", "-")
    client = connect(server).request("GET", "/hold")
    answer = client.answer

    assert_equal [504, "close"], [answer.status, answer["connection"]]
    assert_equal "", client.rest
    server.wait_for_output(%r{GET /hold has not responded within 0.2 s: responding with 504})
    server.wait_for_output(/GET \/hold still runs after its timeout:\n(\t.*\n)*\t.*wait_for_the_file/)
    refute File.exist?(server.path("ended"))
    assert_equal "served", connect(server).request("GET", "/").answer.body
    go(server)
    wait_until("the application has ended") { File.exist?(server.path("ended")) }
    server.wait_for_output(%r{"GET /hold HTTP/1.1" 504})
  end

  def test_the_application_knows_its_deadline
    server = serve(APP, "--request-timeout", 5, "--request-timeout-for", "/none*: 0")

    2.times { assert_includes 4.0..5.0, Float(connect(server).request("GET", "/deadline").answer.body) }
    assert_equal "nil", connect(serve(APP)).request("GET", "/deadline").answer.body
  end

  def test_the_application_sets_its_timeout
    server = serve(APP, "-t", "3:3", "--request-timeout", "0.3")

    assert_equal 504, connect(server).request("GET", "/short").answer.status
    assert_equal "served", connect(server).request("GET", "/longer").answer.body
  end

  def test_without_the_option_too
    server = serve(APP)

    assert_equal 504, connect(server).request("GET", "/short").answer.status
    server.wait_for_output(/GET \/short still runs after its timeout:\n(\t.*\n)*\t.*wait_for_the_file/)
  end

  def test_it_has_an_error_page
    server = serve(APP, "--request-timeout", "0.1", "--public", "public", files: { "public/504.html" => "<p>late</p>" })

    assert_equal "<p>late</p>", connect(server).request("GET", "/hold").answer.body
  end

  def test_a_computing_thread_gets_its_504_on_time_too
    server = serve("run ->(_) { loop { 1 + 1 } }", "-t", "2:2", "--request-timeout", "0.2")

    assert_equal([504, 504], Array.new(2) { connect(server).request("GET", "/") }.map { |client| client.answer.status })
    server.wait_for_output(%r{GET / still runs after its timeout:\n(\t.*\n)*\t.*loop})
    server.signal("KILL")
  end
end
