# frozen_string_literal: true

# 10,000 clients that have made one request each and stay connected: the memory of an idle connection, and the CPU time of an
# idle server, which must be zero.
require_relative "../check"

CONNECTIONS = 10_000
REQUEST = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
SECONDS = 10

# Makes one request on the connection and reads the whole response; true if there was one.
def ask(socket)
  socket.write(REQUEST)
  answer = +""
  answer << socket.readpartial(4096) until answer.include?("\r\n\r\n") && answer.end_with?("\n")
  answer.start_with?("HTTP/1.1 200")
rescue SystemCallError, EOFError
  false
end

def connect(port)
  TCPSocket.new("127.0.0.1", port).tap { |socket| socket.setsockopt(:TCP, :NODELAY, 1) }
end

def ticks(group)
  group.pids.sum { |pid| group.cpu_ticks(pid) }
end

Fairlead::Soak::Check.run("idle") do |check|
  raise Bench::Error, "needs /proc" unless Bench::ProcessGroup.readable?

  Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
  shape = Bench::Shape.parse("1x5")
  check.serve(Bench::Scenario.named("short"), shape, options: %w[--keep-alive-timeout 300]) do |running|
    check.load(running, shape, seconds: 1)
    before = running.group.memory_kib
    sockets = Array.new(CONNECTIONS) { connect(running.port) }
    answered = sockets.count { |socket| ask(socket) }
    sleep 1
    after = running.group.memory_kib
    used = -ticks(running.group)
    sleep SECONDS
    used += ticks(running.group)

    check.at_least("connections with a response", answered, CONNECTIONS)
    check.show("memory (PSS) before", before / 1024.0, "MiB")
    check.show("memory (PSS) with #{CONNECTIONS} idle connections", after / 1024.0, "MiB")
    check.at_most("memory per idle connection", (after - before).fdiv(CONNECTIONS), 4.0, "KiB")
    check.at_most("CPU time over #{SECONDS} s, ticks of #{(1000 / Bench::ProcessGroup::TICKS_PER_SECOND).round} ms", used, 1)
    check.at_least("connections that still respond, of 100", sockets.each_slice(CONNECTIONS / 100).count { |(socket)| ask(socket) }, 100)
    sockets.each(&:close)
  end
end
