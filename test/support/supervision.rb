# frozen_string_literal: true

require_relative "as_stranger"
require_relative "http_client"
require_relative "processes"
require_relative "restarts"
require_relative "servers"

module Fairlead
  module Test
    # For tests of faults: servers with short timeouts, tools that make processes fail, and assertions about the outcome.
    module Supervision
      include Servers
      include Restarts

      # Kinds of server, each with its number of workers.
      SHAPES = { "without_workers" => 0, "with_workers" => 2 }.freeze

      # The text of a configuration file.
      QUICK = <<~RUBY
        worker_timeout 2
        worker_boot_timeout 3
        shutdown_timeout 2
        load_timeout 3 if respond_to?(:load_timeout)
        worker_settle_time 0.5 if respond_to?(:worker_settle_time)
      RUBY

      ADDRESS = %(bind "tcp://127.0.0.1:0"\n)

      # Longest time for a server to notice a fault and to act on it, in seconds: longer than the times of QUICK.
      PATIENCE = 15

      # Longest time for a server to end when it has nothing to finish, in seconds.
      PROMPT = 6

      # Starts a server with the application VERSIONED. +config+: added to its configuration file. Otherwise like
      # ServerProcess.new.
      def supervised(workers, *arguments, config: "", **options)
        prepared(workers, *arguments, config: config, **options, &:start)
      end

      # The same, but not started yet. +kind+: a subclass of ServerProcess.
      def prepared(workers, *arguments, config: "", app: VERSIONED, files: {}, kind: ServerProcess, **options)
        files = { "version" => "1", "config/fairlead.rb" => QUICK + ADDRESS + config, **files }
        server = own(kind.new(app, "-w", workers, *arguments, bind: nil, files: files, **options))
        yield server if block_given?
        server
      end

      # Replaces the text that was added to the configuration file.
      def configure(server, config) = server.write("config/fairlead.rb", QUICK + ADDRESS + config)

      # Returns the version and the process that respond, each nil if the server refuses, resets or takes too long.
      def reply(server, path = "/", seconds: 3)
        client = HttpClient.new(Socket.tcp("127.0.0.1", server.port, connect_timeout: seconds), seconds: seconds)
        body = client.get(path, "connection" => "close").body
        client.close
        body.split.then { |version, pid| [version, pid.to_i] }
      rescue SystemCallError, HttpClient::CutOff, HttpClient::MalformedAnswer, Waiting::Expired
        nil
      end

      # Waits until the server responds with that version.
      def wait_for_version(server, version, seconds: PATIENCE)
        wait_until("version #{version}", seconds: seconds) do
          flunk "the server has ended (#{server.status})" if server.exited?
          reply(server)&.first == version
        end
      end

      # Waits until exactly +count+ processes serve, or the only one without workers; returns their ids.
      def wait_for_serving(server, count, seconds: PATIENCE)
        wait_until("#{count} serving processes", seconds: seconds) do
          flunk "the server has ended (#{server.status})" if server.exited?
          (pids = server.serving_pids).size == [count, 1].max && pids
        end
      end

      # Waits for a line on either stream; fails at once if the server ends.
      def wait_for_line(server, pattern, seconds: PATIENCE)
        wait_until("a line like #{pattern.inspect}", seconds: seconds) do
          line = server.stderr.match(pattern) || server.stdout.match(pattern)
          flunk "the server has ended (#{server.status})" if !line && server.exited?
          line
        end
      end

      # Asserts that the server logs one line about the failed restart, and continues as before. +serving+: the processes
      # before.
      def assert_refused(server, reason, serving, kind: "hot restart")
        wait_for_line(server, /#{kind}: failed, .* goes on serving: .*#{reason}/m)

        assert_predicate server, :running?
        assert_equal "1", wait_until("a response") { reply(server) }.first
        wait_until("the same processes", seconds: PROMPT) { server.serving_pids == serving }
        assert_equal 1, server.stderr.scan("#{kind}: failed").size
      end

      # Asserts that a restart works, so nothing is stuck.
      def assert_restarts(server, version = "2", signal: :USR2)
        server.write("version", version)
        server.signal(signal)
        wait_for_version(server, version)
      end

      # Asserts that another worker replaces a killed one, and serves.
      def assert_replaces(server, victim, count: 2)
        Process.kill(:KILL, victim)
        wait_until("a replacement of #{victim}", seconds: PATIENCE) do
          flunk "the server has ended (#{server.status})" if server.exited?
          server.serving_pids.size == count && !server.serving_pids.include?(victim)
        end
        assert wait_until("a response") { reply(server) }
      end

      # Sends the signal, and asserts that the server ends in time and leaves no process and no listener.
      def assert_ends(server, signal = :TERM, seconds: PROMPT)
        server.signal(signal)
        wait_until("the end after #{signal}", seconds: seconds) { server.exited? }
        assert_nothing_left(server)
      end

      # Asserts that no process of the server runs and that its port is free.
      def assert_nothing_left(server, seconds: PROMPT)
        wait_until("the end of all processes", seconds: seconds) { Processes.group(server.pid).empty? }
        wait_until("a free port") { closed?(server.port) }
      end

      # Returns true if no process listens on the port.
      def closed?(port)
        TCPSocket.new("127.0.0.1", port).close
        false
      rescue Errno::ECONNREFUSED
        true
      end

      # Sets a soft limit of a running process. +limits+: as for prlimit(1), such as nofile: 20.
      def limit(pid, **limits)
        flags = limits.map { |name, value| "--#{name}=#{value}:" }
        owner = File.stat("/proc/#{pid}").uid
        become = owner == Process.uid ? [] : [RbConfig.ruby, "-e", AsStranger::BECOME]
        assert system(*become, "prlimit", "--pid", pid.to_s, *flags), "prlimit #{flags.join(" ")}"
      end

      # Raises such a limit again. +name+: as in /proc.
      def lift(pid, name)
        limits = File.readlines("/proc/#{pid}/limits").find { |line| line.start_with?(name) }
        limit(pid, { "Max processes" => :nproc, "Max open files" => :nofile }.fetch(name) => limits.delete_prefix(name).split[1])
      end

      # Waits for that time to pass: for events that must not happen in it.
      def pass_time(seconds)
        over = monotonic + seconds
        wait_until("#{seconds} s to pass", seconds: seconds + 5) { monotonic > over }
      end

      def skip_unless_root = Process.uid.zero? || skip("only root can do this")

      # Mounts a small disk on that folder of the server during the block.
      def with_small_disk(server, folder)
        skip_unless_root
        skip "this process may not mount" unless system("mount", "-t", "tmpfs", "-o", "size=64k", "none", server.path(folder), err: File::NULL)
        yield
      ensure
        server.kill_all
        system("umount", server.path(folder), err: File::NULL)
      end

      # Fills the disk of that folder.
      def fill_disk(server, folder)
        File.open(server.path("#{folder}/ballast"), "wb") { |file| loop { file.syswrite("x" * 4096) } }
      rescue Errno::ENOSPC
        nil
      end
    end
  end
end
