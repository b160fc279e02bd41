# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"
require_relative "../../rakelib/packaging/build"

module Fairlead
  module Test
    # Two copies of this checkout in folders of different lengths, each with a home of Cargo of its own, in which the files of this machine's
    # gems are built as for a release, with the extension for one Ruby.
    module TwoBuilds
      ROOT = File.expand_path("../..", __dir__)
      RUBY = Packaging::RUBIES.last
      PLATFORM = Packaging::Platform::ALL.each_value.find(&:runs_here?) || abort("builds are compared on Linux with glibc")
      SCRIPT = <<~'CODE'
        platform = Packaging::Platform::ALL.fetch(ARGV.fetch(0))
        build = Packaging::Build.new(platform, rubies: [ARGV.fetch(1)])
        folder = build.server
        FileUtils.cp(build.load_tool, folder) if Packaging::Toolchain.builds_for?(platform.static_target)
      CODE
      # The load tool needs Rust's standard library for musl.
      PROGRAMS = Packaging::Build::SERVER_PROGRAMS +
                 (Packaging::Toolchain.builds_for?(PLATFORM.static_target) ? [Packaging::Build::LOAD_TOOL] : [])
      FILES = ["#{RUBY}/#{PLATFORM.extension}", *PROGRAMS].freeze
      SETTINGS = { "CARGO_TARGET_DIR" => nil, "RUSTFLAGS" => nil, "CFLAGS" => nil }.freeze

      class << self
        def folders = @folders ||= %w[first another/folder].map { |name| copy(File.join(outside, name)) }.each { |folder| build(folder) }

        def built(folder, file) = File.join(folder, "target/gems/files", PLATFORM.name, file)

        # Paths that must not be in a binary.
        def private_paths = [outside, Dir.home, cargo_home, ROOT].map { |path| "#{path}/" }.uniq

        private

        def build(folder) = run(folder, "ruby", "-r./rakelib/packaging/build", "-e", SCRIPT, PLATFORM.name, RUBY)

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
          SETTINGS.merge("CARGO_HOME" => home, "SOURCE_DATE_EPOCH" => "1700000000")
        end

        def outside = @outside ||= Dir.mktmpdir("builds").tap { |folder| Minitest.after_run { FileUtils.rm_rf(folder) } }

        def cargo_home = File.expand_path(ENV.fetch("CARGO_HOME", File.join(Dir.home, ".cargo")))
      end
    end
  end
end
