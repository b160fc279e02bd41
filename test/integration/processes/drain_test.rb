# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# The end under load, of one process and of workers: each request that has arrived gets its response, no new connection is
# accepted, and the server does not wait for idle clients.
class DrainTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  SLOW = <<~RUBY
    run lambda { |env|
      warn("running")
      sleep 0.5
      [200, {}, ["whole"]]
    }
  RUBY

  SHAPES = [["-t", 2], ["-w", 2, "-t", 2]].freeze

  def test_requests_that_run_or_wait_are_answered_and_their_connections_closed
    each_shape do |server|
      clients = Array.new(8) { connect(server).request }
      server.wait_for_output(/running.*running/m)
      server.signal(:TERM)
      answers = clients.map(&:answer)

      assert_equal ["whole"] * 8, answers.map(&:body)
      assert_includes answers.map { |answer| answer["connection"] }, "close"
      assert_empty clients.map(&:rest).join
      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  # While a file "full" exists, the system cannot start another thread.
  FULL = <<~RUBY.freeze
    module Full
      def new(...)
        raise ThreadError, "can't create Thread: Resource temporarily unavailable" if File.exist?("full")
        super
      end
    end
    Thread.singleton_class.prepend(Full)
    #{SLOW}
  RUBY

  def test_without_room_for_a_thread_requests_are_answered_all_the_same
    SHAPES.each do |shape|
      server = serve(FULL, *shape)
      client = connect(server).request
      server.wait_for_output(/running/)
      server.write("full", "")
      server.signal(:TERM)

      assert_equal "whole", client.answer.body
      assert_equal 0, server.wait_exit.exitstatus, shape.inspect
      assert_logged "no thread can wait for the requests", server
    end
  end

  def test_idle_connections_are_closed_and_do_not_delay_the_end
    each_shape do |server|
      idle = Array.new(5) { connect(server).tap(&:get) } + [connect(server)]

      assert_ends_before_its_timeout server
      assert_empty idle.map(&:rest).join
    end
  end

  def test_new_connections_are_refused_while_requests_finish
    each_shape do |server|
      client = connect(server).request
      server.wait_for_output(/running/)
      server.signal(:TERM)
      wait_until("connections to be refused") { refused?(server) }

      assert_equal "whole", client.answer.body
      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  def test_no_request_of_busy_keep_alive_clients_is_lost
    [[], ["-w", 2]].each do |processes|
      server = serve("run ->(env) { sleep 0.001; [200, {}, ['x']] }", "-t", 2, *processes)
      clients = Array.new(6) { connect(server) }
      counts = clients.map { |client| Thread.new { ask_until_told_to_close(client) } }
      wait_until("load") { server.ready? && get(server).status == 200 }
      server.signal(:TERM)

      assert_operator counts.map(&:value).min, :>, 0
      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  def test_a_request_whose_body_is_on_its_way_is_answered
    each_shape do |server|
      client = connect(server).write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\nabc")
      busy = connect(server).request
      server.wait_for_output(/running/)
      server.signal(:TERM)
      server.wait_for_output(/finishing open requests/)
      client.write("def")

      assert_equal %w[whole whole], [busy, client].map { |one| one.answer.body }
      assert_equal 0, server.wait_exit.exitstatus
    end
  end

  def test_a_client_that_does_not_take_its_answer_is_waited_for_no_longer_than_the_shutdown_timeout
    server = serve("run ->(env) { [200, {}, ['x' * 20_000_000]] }", "-t", 1, "--shutdown-timeout", 1)
    client = connect(server).request
    assert client.readable?(10)

    assert_operator seconds_of { server.stop }, :>=, 0.9
    assert_match(/did not finish within 1 s and were aborted/, server.stderr)
  end

  DEFERRING = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/blocks" then 5.times { |index| Fairlead.defer { sleep 0.1; warn("block \#{index}") } }
      when "/again" then Fairlead.defer(&(again = -> { sleep 0.01; Fairlead.defer(&again) }))
      end
      [200, {}, ["whole"]]
    }
  RUBY

  def test_deferred_blocks_run_before_the_end
    SHAPES.each do |shape|
      server = serve(DEFERRING, *shape, "-t", 1)
      connect(server).get("/blocks")
      server.stop

      assert_equal %w[0 1 2 3 4], server.stderr.scan(/^block (\d)$/).flatten, shape.inspect
    end
  end

  def test_blocks_that_are_deferred_again_and_again_are_waited_for_no_longer_than_the_shutdown_timeout
    server = serve(DEFERRING, "-t", 1, "--shutdown-timeout", 1)
    connect(server).get("/again")

    assert_operator seconds_of { server.stop }, :>=, 0.9
  end

  # The only thread ends meanwhile, and requests and blocks wait.
  LAST_THREAD = <<~RUBY
    exits = -> { warn("running"); sleep 0.01 until File.exist?("go"); Thread.exit }
    run lambda { |env|
      case env["PATH_INFO"]
      when "/exits" then exits.call
      when "/defers" then [exits, -> { warn("the last block") }].each { |block| Fairlead.defer(&block) }
      end
      [200, {}, ["whole"]]
    }
  RUBY

  def test_a_thread_that_ends_in_a_drain_is_replaced
    [%w[-t 1], %w[-w 1 -t 1]].product(%w[/exits /defers]) do |shape, path|
      server = serve(LAST_THREAD, *shape, "--shutdown-timeout", 600)
      connect(server).request("GET", path)
      server.wait_for_output(/running/)
      client = connect(server).request
      server.signal(:TERM)
      server.wait_for_output(/finishing open requests/)
      server.write("go", "")

      assert_equal "whole", client.answer.body
      assert_equal 0, server.wait_exit.exitstatus
      assert_equal path == "/defers", server.stderr.include?("the last block")
    end
  end

  private

  def each_shape
    SHAPES.each { |arguments| yield serve(SLOW, *arguments) }
  end

  # Number of responses. The last one must announce the end, and none before it may be cut off.
  def ask_until_told_to_close(client)
    (1..).each do |count|
      answer = client.get
      return count if answer["connection"] == "close"
    end
  rescue Fairlead::Test::HttpClient::CutOff
    raise "a request got no response"
  end
end
