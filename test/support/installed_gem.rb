# frozen_string_literal: true

require "net/http"
require "open3"
require_relative "launched_by"
require_relative "rails_application"
require_relative "restarts"

module Fairlead
  module Test
    # The gem as users get it: built from this checkout, installed into an empty gem home (where RubyGems compiles the
    # extension), and run from a folder outside of the checkout.
    module InstalledGem
      include Servers
      include Restarts

      ABI = RbConfig::CONFIG.values_at("ruby_version", "arch").join("-")
      TARGET = File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT), "ruby-#{ABI}")
      HOME = File.join(TARGET, "gem-home")
      PACKAGE = File.join(TARGET, "fairlead.gem")
      COMMAND = File.join(HOME, "bin", "fairlead")

      # A user's environment, without the checkout and Bundler. Cargo ≥ 1.91 keeps its build results for the next run; older
      # versions compile everything again. The target folder is a separate one: Cargo identifies crates by name, version and
      # place in a workspace, so it would confuse these crates with the checkout's.
      ENVIRONMENT = {
        "GEM_HOME" => HOME, "RUBYLIB" => nil, "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "CARGO_TARGET_DIR" => nil,
        "CARGO_BUILD_BUILD_DIR" => File.join(TARGET, "gem-build"),
        "CARGO_PROFILE_RELEASE_OPT_LEVEL" => "0", "CARGO_PROFILE_RELEASE_LTO" => "off",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS" => "16", "CARGO_PROFILE_RELEASE_DEBUG" => "0"
      }.freeze

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
          @environment = @environment.merge("PORT" => "0")
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
        InstalledGem.install(self)
      end

      # Installs the gem once for all test files that run at the same time. The lock ends with its process.
      def self.install(test)
        return @install ||= install_now(test) unless ENV.key?("FAIRLEAD_TESTS_SHARE")

        File.open(File.join(ENV.fetch("FAIRLEAD_TESTS_SHARE"), "gem"), File::RDWR | File::CREAT) do |file|
          file.flock(File::LOCK_EX)
          install_now(test) && file.write("installed") if file.size.zero?
        end
      end

      def self.install_now(test)
        FileUtils.rm_rf(HOME)
        test.run!("gem", "build", "fairlead.gemspec", "--output", PACKAGE, chdir: ROOT)
        test.run!("gem", "install", "--local", "--no-document", PACKAGE)
      end

      def run!(*command, environment: {}, **options)
        output, status = Open3.capture2e(ENVIRONMENT.merge(environment), *command, **options)
        assert_predicate status, :success?, "#{command.join(" ")}\n#{output}"
        output
      end

      private

      # Restarts in each of the possible ways, one after the other.
      def assert_restarts(server, where: "bundle")
        begin_in_bundle(server)
        assert_each_restart(server, "/", where)

        assert_equal where, answer(server).split.last
      end

      # +path+: the path that returns the version.
      def assert_each_restart(server, path, where)
        { USR1: 2, USR2: 3 }.each { |signal, number| assert_signal_brings(signal, server, number, path) }
        server.write("version", "4")
        run!(*ctl(where), "-S", "state", "--wait", "restart", chdir: server.directory)

        assert_equal "4", version(server, path)
        assert_empty server.stderr
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
