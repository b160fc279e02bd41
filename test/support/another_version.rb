# frozen_string_literal: true

require_relative "supervision"

module Fairlead
  module Test
    # For tests of restarts to another version of Fairlead: the same code under other numbers, with a program of the supervisor of its own.
    module AnotherVersion
      include Supervision

      # How long a restart may take, in seconds: two versions at a time load slowly on a busy machine.
      PATIENCE = 40

      VERSION = "9.9.9"
      PROTOCOL = 1_000_000
      LAYOUT = "another layout"

      # Loaded before each program of the server. As long as there is a file "other", it makes the program that version. A folder "old"
      # has the program of the first one.
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

      # No process hangs in these tests.
      PATIENT = "worker_timeout 20; worker_boot_timeout 20; load_timeout 30\n"

      PROGRAM = "fairlead/fairlead-supervisor"

      class << self
        # The program of the other version, of the test build (`bin/setup --test`).
        def program
          @program ||= begin
            target = File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ServerProcess::ROOT)
            abi = RbConfig::CONFIG.values_at("ruby_version", "arch").join("-")
            path = File.join(target, "ruby-#{abi}", "debug/examples/another-version")
            File.file?(path) ? path : raise("the other version is not built: run bin/setup --test")
          end
        end
      end

      # The files of a server that can be restarted to the other version.
      FILES = { "other.rb" => OTHER, "another/fairlead/.keep" => "" }.freeze

      # Its variables. +format+: of what the other program can read.
      def variables(format) = { "RUBYOPT" => "-I. -rother", "ANOTHER_VERSION" => [VERSION, PROTOCOL, LAYOUT, format].join("|") }

      # Such a server, which runs. The block gets it before its start.
      def versioned_server(workers, *arguments, format: 1, files: {}, config: "", environment: {}, **options)
        environment = variables(format).merge(environment)
        prepared(workers, *arguments, files: FILES.merge(files), config: PATIENT + config, environment: environment, **options) do |server|
          File.symlink(AnotherVersion.program, server.path("another/#{PROGRAM}"))
          yield server if block_given?
          server.start
        end
      end

      # From now on, each program that the server starts is of the other version.
      def deploy_other_version(server, version = "2")
        server.write("version", version)
        server.write("other", "")
      end

      # The program that supervises.
      def supervised_by(server) = File.readlink("/proc/#{server.pid}/exe").delete_suffix(" (deleted)")

      # Waits until the restart is over, and the other program supervises for good.
      def assert_other_version(server, version: "2", workers: 0)
        wait_for_line(server, /restart: done/, seconds: PATIENCE)
        wait_for_version(server, version, seconds: PATIENCE)
        wait_for_serving(server, workers, seconds: PATIENCE)

        assert_predicate server, :running?
        assert_equal File.realpath(AnotherVersion.program), supervised_by(server)
      end

      # All is as before: the first program supervises, and can replace a process.
      def assert_first_version(server, program, reason)
        wait_for_line(server, /restart: failed, .* goes on serving: .*#{reason}/m, seconds: PATIENCE)
        wait_for_version(server, "1")

        assert_equal program, supervised_by(server)
        assert_equal 1, server.stderr.scan("restart: failed").size
      end
    end
  end
end
