# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

module Fairlead
  module Test
    # The gem, built from this checkout and installed into an empty home, where RubyGems compiles it: with all optimizations, as for
    # its users. `library` is a folder for RUBYLIB, with the extension and the native programs of the installed gem.
    module GemHome
      class Failed < StandardError; end

      ROOT = File.expand_path("../..", __dir__)
      ABI = RbConfig::CONFIG.values_at("ruby_version", "arch").join("-")
      TARGET = File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT), "ruby-#{ABI}")
      FOLDER = File.join(TARGET, "gem-home")
      LIBRARY = File.join(TARGET, "gem-library")
      PACKAGE = File.join(TARGET, "fairlead.gem")
      COMMAND = File.join(FOLDER, "bin", "fairlead")

      # A user's environment: no checkout, no Bundler. Cargo ≥ 1.91 keeps what it has compiled for the next run, an older one
      # compiles everything again. That folder is not the checkout's own: Cargo takes crates of the same name and version at the
      # same place of a workspace for the same ones, and would believe that the checkout's are built.
      ENVIRONMENT = {
        "GEM_HOME" => FOLDER, "RUBYLIB" => nil, "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "CARGO_TARGET_DIR" => nil,
        "CARGO_BUILD_BUILD_DIR" => File.join(TARGET, "gem-build")
      }.freeze

      class << self
        # True, or raises Failed.
        def install
          FileUtils.rm_rf([FOLDER, LIBRARY])
          run("gem", "build", "fairlead.gemspec", "--output", PACKAGE, chdir: ROOT)
          run("gem", "install", "--local", "--no-document", PACKAGE)
          FileUtils.mkdir_p(File.join(LIBRARY, "fairlead"))
          built.each { |path| FileUtils.ln_s(path, File.join(LIBRARY, "fairlead", File.basename(path))) }
          true
        end

        # The output of a command of the gem's user.
        def run(*command, environment: {}, **options)
          output, status = Open3.capture2e(ENVIRONMENT.merge(environment), *command, **options)
          status.success? ? output : raise(Failed, "#{command.join(" ")}: #{status}\n#{output}")
        end

        private

        def built
          ["fairlead.#{RbConfig::CONFIG["DLEXT"]}", *%w[acme supervisor].map { |name| "fairlead-#{name}" }].map do |name|
            Dir.glob("#{FOLDER}/gems/fairlead-*/lib/fairlead/#{name}").first or raise(Failed, "the installed gem has no #{name}")
          end
        end
      end
    end
  end
end
