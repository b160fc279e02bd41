# frozen_string_literal: true

require_relative "supervision"

module Fairlead
  module Test
    # For tests of restarts to another version of Fairlead: the same code under other version numbers, with a supervisor
    # program of its own.
    module AnotherVersion
      include Supervision

      # Longest time for a restart, in seconds: two versions at once load slowly on a busy machine.
      PATIENCE = 40

      VERSION = "9.9.9"
      PROTOCOL = 1_000_000
      LAYOUT = "another layout"

      # Each program of the server loads this first. While a file "other" exists, the program takes that version. A folder
      # "old" keeps the program of the first version.
      OTHER = <<~RUBY.freeze
        require "fairlead"
        if File.exist?("other")
          $LOAD_PATH.unshift(File.expand_path("another"))
          { Fairlead => [:VERSION, #{VERSION.inspect}], Fairlead::SupervisorSettings => [:PROTOCOL, #{PROTOCOL}],
            Fairlead::Native::Shared => [:LAYOUT, #{LAYOUT.inspect}] }.each do |owner, (name, value)|
            owner.send(:remove_const, name)
            owner.const_set(name, value)
          end
        elsif File.exist?("old")
          $LOAD_PATH.unshift(File.expand_path("old"))
        end
      RUBY

      # Long timeouts: no process hangs in these tests.
      PATIENT = "worker_timeout 20; worker_boot_timeout 20; load_timeout 30\n"

      PROGRAM = "fairlead/fairlead-supervisor"

      class << self
        # Returns the supervisor program of the other version. `bin/setup --test` builds it.
        def program
          @program ||= begin
            target = File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ServerProcess::ROOT)
            abi = RbConfig::CONFIG.values_at("ruby_version", "arch").join("-")
            path = File.join(target, "ruby-#{abi}", "debug/examples/another-version")
            File.file?(path) ? path : raise("the other version is not built: run bin/setup --test")
          end
        end
      end

      # Files of a server that can restart to the other version.
      FILES = { "other.rb" => OTHER, "another/fairlead/.keep" => "" }.freeze

      # Environment of such a server. +format+: the state format that the other program can read.
      def variables(format)
        options = [*ServerProcess::COMPILED, "-I. -rother"].join(" ")
        { "RUBYOPT" => options, "ANOTHER_VERSION" => [VERSION, PROTOCOL, LAYOUT, format].join("|") }
      end

      # Starts such a server. The block gets the server before the start.
      def versioned_server(workers, *arguments, format: 1, files: {}, config: "", environment: {}, **options)
        environment = variables(format).merge(environment)
        prepared(workers, *arguments, files: FILES.merge(files), config: PATIENT + config, environment: environment, **options) do |server|
          File.symlink(AnotherVersion.program, server.path("another/#{PROGRAM}"))
          yield server if block_given?
          server.start
        end
      end

      # From now on, each program that the server starts has the other version.
      def deploy_other_version(server, version = "2")
        server.write("version", version)
        server.write("other", "")
      end

      # Returns the path of the supervisor program.
      def supervised_by(server) = File.readlink("/proc/#{server.pid}/exe").delete_suffix(" (deleted)")

      # Waits until the restart is over and the other program has committed to supervising.
      def assert_other_version(server, version: "2", workers: 0)
        wait_for_line(server, /restart: done/, seconds: PATIENCE)
        wait_for_version(server, version, seconds: PATIENCE)
        wait_for_serving(server, workers, seconds: PATIENCE)

        assert_predicate server, :running?
        assert_equal File.realpath(AnotherVersion.program), supervised_by(server)
      end

      # Asserts that nothing has changed: the first program supervises, and it can replace a process.
      def assert_first_version(server, program, reason)
        wait_for_line(server, /restart: failed, .* goes on serving: .*#{reason}/m, seconds: PATIENCE)
        wait_for_version(server, "1")

        assert_equal program, supervised_by(server)
        assert_equal 1, server.stderr.scan("restart: failed").size
      end
    end
  end
end
