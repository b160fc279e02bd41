# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# Native.current_requests returns the request of each thread.
class CurrentRequestsTest < Minitest::Test
  include Fairlead::Test::HttpServing

  APP = <<~'RUBY'
    now = -> { Fairlead::Native.current_requests.map { |thread, env| "#{thread.name} #{env["PATH_INFO"]}" }.sort }
    case env["PATH_INFO"]
    when "/wait"
      Notes.add("waits")
      sleep 0.01 until File.exist?("go")
      [200, {}, []]
    when "/forked"
      reader, writer = IO.pipe
      pid = fork { writer.write(now.call.join(",")); writer.close; exit!(0) }
      writer.close
      body = reader.read
      Process.wait(pid)
      [200, {}, [body]]
    when "/collected"
      GC.start
      GC.compact if GC.respond_to?(:compact)
      [200, {}, [now.call.join(",")]]
    else
      [200, {}, [now.call.join(",")]]
    end
  RUBY

  def test_each_thread_that_runs_a_request_is_there_with_its_env
    server = serve(unlinted(APP), "-t", "3:3")
    waiting = Array.new(2) { connect(server).request("GET", "/wait") }
    wait_for_notes(server, 2)

    assert_equal %w[/now /wait /wait], paths(server, "/now")
    assert_equal %w[/collected /wait /wait], paths(server, "/collected")
    server.write("go", "")
    waiting.each { |client| assert_equal 200, client.answer.status }
    assert_equal %w[/now], paths(server, "/now")
  end

  def test_a_forked_process_sees_none_of_its_parents_threads
    server = serve(unlinted(APP), "-t", "3:3")
    waiting = connect(server).request("GET", "/wait")
    wait_for_notes(server, 1)

    assert_empty get(server, "/forked").body
    server.write("go", "")
    assert_equal 200, waiting.answer.status
  end

  def test_a_thread_that_is_killed_is_gone
    server = serve(unlinted("Thread.current.kill if env['PATH_INFO'] == '/kill'\n#{APP}"), "-t", "1:1")

    assert_raises(Fairlead::Test::HttpClient::CutOff) { get(server, "/kill") }
    assert_equal %w[/now], paths(server, "/now")
  end

  private

  def paths(server, path)
    get(server, path).body.split(",").map { |line| line[/\S+\z/] }.sort
  end
end
