# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# A request that still runs after shutdown_timeout gets an exception, may clean up, and its client gets 503.
class ForcedShutdownTest < Minitest::Test
  include Fairlead::Test::HttpServing

  SHAPES = [[], ["-w", 1]].freeze

  APP = <<~RUBY
    begin
      Notes.add("running")
      sleep
    rescue => e
      Notes.add("rescued")
    ensure
      Notes.add($!.class.name)
    end
  RUBY

  def test_the_request_gets_503_and_its_ensure_blocks_run
    SHAPES.each do |arguments|
      server = serve(unlinted(APP), "--shutdown-timeout", 1, *arguments)
      client = busy(server)
      server.signal(:TERM)
      answer = client.answer

      assert_equal [503, "close"], [answer.status, answer["connection"]]
      assert_equal 0, server.wait_exit.exitstatus
      assert_equal %w[running Fairlead::ForcedShutdown], notes(server)
      assert_logged("(Fairlead::ForcedShutdown)", server)
    end
  end

  def test_force_shutdown_after_immediately_does_not_wait
    server = serve(unlinted(APP), "-C", "config.rb", files: { "config.rb" => "force_shutdown_after :immediately" })
    client = busy(server)
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    server.signal(:TERM)

    assert_equal 503, client.answer.status
    assert_equal 0, server.wait_exit.exitstatus
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :<, 10
  end

  def test_the_error_handler_makes_the_response
    handler = "lowlevel_error_handler { |error, env, status| [status, {}, [error.class.name]] }"
    server = serve(unlinted(APP), "-C", "config.rb", "--shutdown-timeout", 1, files: { "config.rb" => handler })
    client = busy(server)
    server.signal(:TERM)
    answer = client.answer

    assert_equal [503, "Fairlead::ForcedShutdown"], [answer.status, answer.body]
  end

  def test_one_that_does_not_end_is_cut_off
    server = serve(unlinted("begin; Notes.add('running'); sleep; ensure; sleep; end"), "--shutdown-timeout", 1)
    client = busy(server)
    server.signal(:TERM)

    assert_empty client.rest
    assert_equal 0, server.wait_exit.exitstatus
  end

  private

  # Returns a client with a running request.
  def busy(server)
    client = connect(server).request
    wait_for_notes(server, 1)
    client
  end
end
