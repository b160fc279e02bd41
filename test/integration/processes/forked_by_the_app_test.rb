# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/processes"

# A process that the application forks has copies of every socket and of the poll set until it ends.
class ForkedByTheAppTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Processes

  # /fork leaves a process that lives until there is a file "go"; /raise leaves one that ends like most, with all of Ruby's
  # exit handlers.
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/fork" then Process.detach(fork { sleep 0.01 until File.exist?("go"); exit! })
      when "/exit" then Process.wait(fork { exit 0 })
      when "/raise" then Process.wait(fork { raise "in the child" })
      when "/term"
        pid = fork { sleep }
        Process.kill(:TERM, pid)
        next [200, {}, [Process.wait2(pid).last.termsig.to_s]]
      when "/stop" then Process.wait(Process.fork || exit(0))
      when "/upgrade"
        handler = Class.new { def on_message(client, text) = text == "close" ? client.close : client.write(text) }
        env["rack.upgrade"] = handler.new
        next [200, {}, []]
      end
      [200, env["PATH_INFO"] == "/last" ? { "connection" => "close" } : {}, [env["PATH_INFO"]]]
    }
  RUBY

  def test_a_client_hears_of_the_end_though_another_process_has_its_socket
    with_fork do |server|
      client = connect(server)
      client.get
      get(server, "/fork")

      assert_equal "/last", client.get("/last").body
      assert_predicate client, :closed?
    end
  end

  def test_an_idle_server_uses_no_processor_time_though_another_process_has_its_sockets
    with_fork do |server|
      clients = Array.new(10) { connect(server).tap(&:get) }
      get(server, "/fork")
      clients.each do |client|
        client.get("/last")
        # Further bytes to a socket that only the other process has open.
        client.write("more")
      rescue Errno::EPIPE, Errno::ECONNRESET
        nil
      end
      clients.each(&:close)

      wait_for_idle_second(server.pid)
    end
  end

  def test_requests_under_way_do_not_notice_how_a_child_ends
    server = serve(APP, "-t", 3)
    others = Array.new(5) { connect(server).tap(&:get) }
    %w[/exit /raise /exit].each { |path| assert_equal path, get(server, path).body }

    assert_equal %w[/still] * 5, others.map { |client| client.get("/still").body }
  end

  def test_a_child_that_leaves_the_request_by_exit_ends_nobody_s_connection
    server = serve(APP, "-t", 3)
    others = Array.new(5) { connect(server).tap(&:get) }

    assert_equal "/stop", get(server, "/stop").body
    assert_equal %w[/still] * 5, others.map { |client| client.get("/still").body }
  end

  def test_term_ends_a_child_with_and_without_workers
    [0, 1].each { |workers| assert_equal Signal.list["TERM"].to_s, get(serve(APP, "-w", workers), "/term").body }
  end

  private

  def with_fork
    server = serve(APP, "-t", 3)
    yield server
  ensure
    server&.write("go", "")
  end
end
