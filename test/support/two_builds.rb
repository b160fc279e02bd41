# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

module Fairlead
  module Test
    # Two copies of this checkout in folders of different lengths, built as for gems, each with a home and a home of Cargo of its own.
    module TwoBuilds
      ROOT = File.expand_path("../..", __dir__)
      FILES = ["libfairlead.#{RbConfig::CONFIG["SOEXT"]}", "fairlead-supervisor"].freeze
      PACKAGES = %w[fairlead fairlead-supervisor].freeze
      SETTINGS = { "CARGO_TARGET_DIR" => nil, "RUSTFLAGS" => nil, "CFLAGS" => nil }.freeze

      class << self
        def folders = @folders ||= %w[first another/folder].map { |name| copy(File.join(outside, name)) }.each { |folder| build(folder) }

        # Paths that must not be in a binary.
        def private_paths = [outside, Dir.home, cargo_home, ROOT].map { |path| "#{path}/" }.uniq

        private

        def build(folder)
          packages = PACKAGES.flat_map { |package| ["--package", package] }
          run(folder, "bin/support/reproducible", "build", "--profile", "gem", "--locked", *packages)
        end

        # The files that git tracks or would track.
        def copy(folder)
          paths, = Open3.capture2("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", chdir: ROOT)
          paths.split("\0").each do |path|
            next unless File.file?(File.join(ROOT, path))

            FileUtils.mkdir_p(File.join(folder, File.dirname(path)))
            FileUtils.cp(File.join(ROOT, path), File.join(folder, path))
          end
          folder
        end

        def run(folder, *command)
          output, status = Open3.capture2e(environment(folder), *command, chdir: folder)
          raise "`#{command.join(" ")}` failed in #{folder}:\n#{output}" unless status.success?
        end

        # Cargo's downloads are shared, under another name.
        def environment(folder)
          home = "#{folder}-home"
          unless Dir.exist?(home)
            FileUtils.mkdir_p(home)
            Dir.each_child(cargo_home) { |name| FileUtils.ln_s(File.join(cargo_home, name), File.join(home, name)) }
          end
          SETTINGS.merge("CARGO_HOME" => home, "SOURCE_DATE_EPOCH" => "1700000000", "RUBY" => RbConfig.ruby)
        end

        def outside = @outside ||= Dir.mktmpdir("builds").tap { |folder| Minitest.after_run { FileUtils.rm_rf(folder) } }

        def cargo_home = File.expand_path(ENV.fetch("CARGO_HOME", File.join(Dir.home, ".cargo")))
      end
    end
  end
end
