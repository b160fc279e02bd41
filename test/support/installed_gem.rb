# frozen_string_literal: true

require "net/http"
require_relative "gem_home"
require_relative "launched_by"
require_relative "rails_application"
require_relative "restarts"

module Fairlead
  module Test
    # The gem as users get it: installed in a gem home, and run from a folder outside of the checkout. `bin/test --only gem` installs
    # it; otherwise the first test file does, for all files that run at the same time.
    module InstalledGem
      include Servers
      include Restarts

      HOME = GemHome::FOLDER
      COMMAND = GemHome::COMMAND
      ENVIRONMENT = GemHome::ENVIRONMENT

      # As in the README. Bundler may use only installed gems.
      GEMFILE = "source \"https://rubygems.org\"\ngem \"fairlead\"\n"

      # Tells if the application runs in the bundle.
      APP = "IN_BUNDLE = defined?(Bundler) ? :bundle : :system\n#{Restarts::VERSIONED.sub("Process.pid}", "\\0 \#{IN_BUNDLE}")}".freeze

      # A server started with the installed gem, in another way than by its file.
      class Installed < LaunchedBy
        def initialize(*words, shebang: nil, **options)
          @words = words
          super("fairlead", APP, *options.delete(:arguments), files: { "version" => "1", "Gemfile" => GEMFILE }, environment: ENVIRONMENT, **options)
          @environment = @environment.merge("PATH" => "#{shebang ? stub(shebang) : File.dirname(COMMAND)}:#{ENV.fetch("PATH")}")
        end

        private

        def command = [*@words, "-b", "tcp://127.0.0.1:0", *@arguments]

        def process_environment = super.merge("RUBYLIB" => nil)

        # Writes RubyGems' program with another first line, as on other systems.
        def stub(shebang)
          path = write("stubs/fairlead", File.read(COMMAND).sub(/\A#!.*/, shebang))
          File.chmod(0o755, path)
          File.dirname(path)
        end
      end

      # An application from `rails new`. Its Gemfile names the installed gem instead of the checkout.
      class InstalledRails < Installed
        # Restarts through the control server need its state file.
        SETTINGS = "\nworkers 2\nstate_path 'state'\nactivate_control_app 'auto'\n"

        def initialize(*words, shebang: nil)
          super(*words)
          @environment = @environment.merge("PORT" => "0", "RUBYOPT" => COMPILED)
          RailsApplication.files.each { |path, text| write(path, text) }
          write("Gemfile", File.read(path("Gemfile")).sub(/^gem 'fairlead'.*/, "gem 'fairlead'"))
          FileUtils.rm_f(path("Gemfile.lock"))
          write("config/puma.rb", File.read(path("config/puma.rb")) + SETTINGS)
          write("bin/rails", File.read(path("bin/rails")).sub(/\A#!.*/, shebang)) if shebang
          Dir.glob(path("bin/*")) { |program| File.chmod(0o755, program) }
        end

        private

        def command = @words
      end

      SHEBANGS = { "as_installed" => nil, "of_env" => "#!/usr/bin/env ruby", "of_this_ruby" => "#!#{RbConfig.ruby}",
                   "of_another_name" => "#!#{File.dirname(RbConfig.ruby)}/ruby" }.freeze

      def setup
        InstalledGem.install unless ENV.key?("FAIRLEAD_INSTALLED_GEM")
      end

      # Installs the gem once for all test files that run at the same time. The lock ends with its process.
      def self.install
        return @install ||= GemHome.install unless ENV.key?("FAIRLEAD_TESTS_SHARE")

        File.open(File.join(ENV.fetch("FAIRLEAD_TESTS_SHARE"), "gem"), File::RDWR | File::CREAT) do |file|
          file.flock(File::LOCK_EX)
          GemHome.install && file.write("installed") if file.size.zero?
        end
      end

      def run!(*command, environment: {}, **options)
        GemHome.run(*command, environment: environment, **options).tap { pass }
      end

      private

      # Restarts in each of the possible ways, one after the other.
      def assert_restarts(server, where: "bundle")
        begin_in_bundle(server)
        assert_each_restart(server, "/", where)

        assert_equal where, answer(server).split.last
      end

      # +path+: the path that returns the version. +where+: the folder of the tool that requests a third restart, if there is one.
      def assert_each_restart(server, path, where)
        { USR1: 2, USR2: 3 }.each { |signal, number| assert_signal_brings(signal, server, number, path) }
        assert_restart_by_tool(server, path, where) if where
        assert_empty server.stderr
      end

      def assert_restart_by_tool(server, path, where)
        server.write("version", "4")
        run!(*ctl(where), "-S", "state", "--wait", "restart", chdir: server.directory)

        assert_equal "4", version(server, path)
      end

      def ctl(where) = where == "bundle" ? %w[bundle exec fairlead ctl] : [COMMAND, "ctl"]

      def assert_signal_brings(signal, server, number, path = "/")
        server.write("version", number.to_s)
        server.signal(signal)
        wait_until("version #{number} after #{signal}", seconds: 60) do
          version(server, path) == number.to_s
        rescue SystemCallError, IOError
          nil
        end
        pass
      end

      def begin_in_bundle(server, environment = {})
        bundle!(server, environment)
        server.start(seconds: 60)
      end

      def bundle!(server, environment = {})
        skip("Bundler is not installed") unless system("bundle", "--version", out: File::NULL, err: File::NULL)
        own(server)
        run!("bundle", "install", "--local", "--quiet", environment: environment, chdir: server.directory)
      end
    end
  end
end
