# frozen_string_literal: true

require "tempfile"
require_relative "http_client"
require_relative "launched_by"
require_relative "rails_application"
require_relative "servers"

module Fairlead
  module Test
    # For test cases that start the generated application. Skips them if it cannot be generated.
    module RailsServers
      include Servers
      include HttpClients

      # Longest time for a start: Rails is slow on a busy machine.
      SECONDS = 120

      def before_setup
        super
        skip(RailsApplication.missing) if RailsApplication.missing
      end

      # Starts the application with `fairlead`; +files+ and +environment+ as for ServerProcess.
      def fairlead(*arguments, files: {}, environment: {})
        shop(ServerProcess.new(nil, *arguments, files: RailsApplication.files.merge(files), environment: environment))
      end

      # Starts it with `rails server` and no argument but a free port.
      def rails_server(*arguments, files: {}, environment: {})
        environment = { "PORT" => "0", **environment }
        shop(LaunchedBy.new("bin/rails", nil, "server", *arguments, files: RailsApplication.files.merge(files), environment: environment))
      end

      # Runs `rails` with these arguments beside the server, and returns its output. Ends the programs that it leaves behind,
      # such as a browser.
      def rails(server, *arguments, environment: {})
        Tempfile.create("rails") do |file|
          pid = Process.spawn(RailsApplication::ENVIRONMENT.merge(environment), RbConfig.ruby, "bin/rails", *arguments,
                              chdir: server.directory, out: file, err: file, pgroup: true)
          status = wait_until("rails #{arguments.join(" ")}", seconds: SECONDS) { Process.wait2(pid, Process::WNOHANG)&.last }
          assert_predicate status, :success?, File.read(file.path)
          File.read(file.path)
        ensure
          end_group(pid)
        end
      end

      # Returns the version of the code that responds, and its process.
      def version(server) = get(server, "/version").body.split.map { |word| Integer(word, 10) }

      # Returns the content of the generated application's pid file; nil if there is none.
      def written_pid(server)
        path = server.path("tmp/pids/server.pid")
        Integer(File.read(path), 10) if File.exist?(path)
      end

      private

      def end_group(pid)
        Process.kill(:KILL, -pid)
      rescue Errno::ESRCH
        nil # no process is left
      end

      def shop(server)
        own(server)
        Dir.glob(server.path("bin/*")) { |path| File.chmod(0o755, path) } # a restart runs bin/rails by its name
        server.start(seconds: SECONDS)
      end
    end
  end
end
