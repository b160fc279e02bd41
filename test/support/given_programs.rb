# frozen_string_literal: true

require_relative "control"
require_relative "launched_by"
require_relative "supervision"

module Fairlead
  module Test
    # For tests of programs that hand over their application and have no workers.
    module GivenPrograms
      include Supervision
      include HttpClients
      include Controlled

      # /keep keeps the GVL until the test opens the other end of a pipe; /wait waits for a file.
      PROGRAM = <<~'RUBY'
        require "fairlead"
        require "fiddle"
        $stdout.sync = true
        VERSION = File.read("version").strip
        raise "this code is broken" if VERSION == "broken"

        Interruption = Class.new(StandardError)
        KEEP = Fiddle::Function.new(Fiddle::Handle::DEFAULT["open"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
        at_exit { File.write("exits", "#{Process.pid}\n", mode: "a") }
        ticks = 0
        Thread.new { loop { ticks += 1 and sleep 0.01 } }
        answers = {
          "/ticks" => -> { ticks },
          "/keep" => -> { warn("kept"); KEEP.call(File.expand_path("pipe"), File::RDONLY) },
          "/wait" => -> { warn("waits"); sleep(0.01) until File.exist?("go") },
          "/ever" => -> { warn("waits"); sleep },
          "/fork" => -> { Process.wait(fork { exit }) },
          "/end_fork" => -> { (pid = fork { sleep }) and Process.kill(:TERM, pid) and Process.wait2(pid).last.termsig },
          "/orphan" => -> { system("sleep 0.2 &") },
          "/child" => -> { Process.wait2(spawn("exit 7")).last.exitstatus },
          "/late" => -> { (pid = spawn("exit 7")) and sleep(12) and Process.wait2(pid).last.exitstatus },
          "/stop" => -> { Thread.new { SERVER.shutdown } },
          "/raise" => -> { Thread.main.raise(Interruption, "of another thread") },
          "/exit" => -> { Thread.main.raise(SystemExit.new(3)) }
        }
        Thread.new { loop { File.write("running", "#{Process.pid} ", mode: "a") and sleep 0.01 } } if File.exist?("running")
        hijack = lambda do |io|
          io.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
          Thread.new { loop { io.write(".") and sleep 0.01 } }
        end
        app = ->(env) { env["PATH_INFO"] == "/hijack" ? hijack.call(env["rack.hijack"].call) : [200, {}, ["#{VERSION} #{Process.pid} #{answers[env["PATH_INFO"]]&.call}"]] }
        SERVER = Object.new.extend(Fairlead::Handler)
        before = trap("USR1", "DEFAULT")
        begin
          SERVER.run(app, Host: "127.0.0.1", Port: 0)
          puts "run has returned"
        rescue Interruption => e
          puts "run has raised #{e.message}"
        ensure
          puts "the handler of USR1 is #{trap("USR1", "DEFAULT").inspect}"
        end
      RUBY

      HOOKS = <<~'RUBY'
        %i[after_booted before_restart after_stopped].each do |name|
          send(name) { File.write("hooks", "#{name} #{Process.pid}\n", mode: "a") }
        end
      RUBY

      def program(config: "", files: {}, **options)
        files = { "version" => "1", "program.rb" => PROGRAM, "config/fairlead.rb" => QUICK + config, **files }
        own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: files, **options)).start
      end

      # Starts a program with a control server.
      def controlled(**options)
        program(config: %(activate_control_app "tcp://127.0.0.1:0", auth_token: "#{TOKEN}"\nstate_path "#{STATE}"\n#{HOOKS}), **options)
      end

      def hooks(server) = File.exist?(server.path("hooks")) ? File.readlines(server.path("hooks"), chomp: true) : []

      def exits(server) = File.readlines(server.path("exits"), chomp: true)

      # Restarts the server, and returns the process that serves afterwards.
      def restart(server, version, signal: :USR2)
        server.write("version", version)
        server.signal(signal)
        wait_for_version(server, version)
        wait_until("the end of the old code", seconds: PATIENCE) do
          reply(server)&.first == version && server.serving_pids.size == 1 && supervised?(server)
        end
        server.serving_pid
      end

      # True if the program of the supervisor has replaced the one with the old code. For a moment in between, there is no program.
      def supervised?(server)
        File.readlink("/proc/#{server.pid}/exe").end_with?("/fairlead-supervisor")
      rescue Errno::ENOENT
        false
      end

      def pipe(server) = File.mkfifo(server.path("pipe"))

      # Opens the other end of the pipe.
      def let_go(server)
        wait_until("a reader") do
          File.open(server.path("pipe"), File::WRONLY | File::NONBLOCK, &:close)
          true
        rescue Errno::ENXIO
          false
        end
      end

      # As in Supervision, without the address.
      def configure(server, config) = server.write("config/fairlead.rb", QUICK + config)
    end
  end
end
