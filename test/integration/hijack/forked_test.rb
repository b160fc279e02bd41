# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "support/launched_by"

# A program that forks while it has hijacked sockets, and serves in the child. A thread of the server relays the bytes that
# the client has sent behind its request, and a child has none of its parent's threads.
class ForkedHijackTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  PROGRAM = <<~'RUBY'
    require "fairlead"
    require "socket"
    $stdout.sync = true
    ECHO = lambda do |env|
      io = env["rack.hijack"].call
      Thread.new { while (line = io.gets) do io.write("#{Process.pid} said #{line}") end }
      [-1, {}, []]
    end
    serve = lambda do
      server = Fairlead::Server.new(ECHO, bind: "tcp://127.0.0.1:0", threads: [0, 3]).start
      puts "listening on #{server.addresses.first}"
      server
    end
    server = serve.call
    open = TCPSocket.new("127.0.0.1", server.addresses.first[/\d+\z/])
    open.write("GET / HTTP/1.1\r\nhost: a\r\n\r\nahead\n")
    open.gets == "#{Process.pid} said ahead\n" or abort
    child = fork do
      serve.call
      puts "fairlead inside ready"
      sleep
    end
    Process.wait(child)
  RUBY

  def test_a_child_carries_what_comes_to_its_own_sockets_and_the_parent_to_its
    server = own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: { "program.rb" => PROGRAM })).start
    readers = server.ports.reverse.map { |port| reader_of(adopt(TCPSocket.new("127.0.0.1", port)), "a line\n") }

    assert_equal server.serving_pid, readers.last
    refute_equal(*readers)
  end

  private

  # Sends a line together with a request, and one behind it; returns the process that has read them.
  def reader_of(client, line)
    client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n#{line}")
    first = client.read_through("\n")
    client.write(line)

    assert_equal first, client.read_through("\n")
    assert_match(/\A\d+ said #{line}\z/, first)
    first.to_i
  end
end
