# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/rack_apps"

# An exception while the socket becomes a Ruby object, raised by a TracePoint: before that object owns the descriptor, and
# after it.
class InterruptedHijackTest < Minitest::Test
  include Fairlead::Test::HttpServing

  SETUP = <<~'RUBY'
    def sockets = Dir.children("/proc/self/fd").count { |fd| (File.readlink("/proc/self/fd/#{fd}") rescue "").start_with?("socket:") }

    # The next call of for_fd in this thread raises.
    def interrupt(event)
      trace = TracePoint.new(event.to_sym) do |point|
        next unless point.method_id == :for_fd

        trace.disable
        raise "interrupted"
      end
      trace.enable(target_thread: Thread.current)
    end
  RUBY

  APP = <<~'RUBY'
    _, kind, event = env["PATH_INFO"].split("/")
    next [200, {}, [sockets.to_s]] if kind == "sockets"

    interrupt(event)
    case kind
    when "full"
      begin
        env["rack.hijack"].call
      rescue RuntimeError => e
        Notes.add(e.message)
      end
      [-1, {}, []]
    when "partial" then [200, { "rack.hijack" => ->(io) { io.close } }, []]
    when "next" then [200, {}, ["traced"]]
    end
  RUBY

  %w[c_call c_return].each do |event|
    define_method("test_a_full_hijack_that_fails_at_#{event}_ends_the_connection") do
      assert_ends("full", event)
      assert_equal %w[interrupted], notes(@servers.last)
    end

    define_method("test_a_partial_hijack_that_fails_at_#{event}_ends_the_connection") { assert_ends("partial", event) }
  end

  # The socket's object stays in use: only the copy may be closed.
  def test_the_socket_in_the_env_may_fail_as_well
    server = serving("-e", "production", config: "puma_env\n")
    client = connect(server)
    before = client.get("/sockets").body
    10.times do
      client.get("/next/c_call")
      assert_equal 500, client.get("/sockets").status
    end

    assert_equal before, client.get("/sockets").body
  end

  private

  def assert_ends(kind, event)
    server = serving
    before = get(server, "/sockets").body
    client = connect(server).request("GET", "/#{kind}/#{event}")

    refute_includes client.rest, "traced"
    assert_equal before, get(server, "/sockets").body
  end

  def serving(*arguments, config: nil)
    files = config ? { "fairlead.rb" => config } : {}
    serve(unlinted(APP, setup: SETUP), "-t", "1:1", *(config ? ["-C", "fairlead.rb"] : []), *arguments, files: files)
  end
end
