# frozen_string_literal: true

require "date"
require "digest"
require "fileutils"
require_relative "checks"

module Release
  # Everything up to the upload, which is left to a person or to the workflow. Each step can be repeated.
  class Steps
    ROOT = File.expand_path("../..", __dir__)
    PACKAGES = File.join(ROOT, "pkg")
    SUMS = File.join(PACKAGES, "SHA256SUMS")

    # Commands that have to succeed for the content of a release.
    REQUIRED = [
      %w[bin/test], %w[bin/test --ruby 3.3], %w[bin/test --ruby 3.3 test/gem], %w[bin/check-platforms], %w[bin/fuzz 60], %w[bin/soak 60],
      %w[bin/supply-chain]
    ].freeze

    # Has the content for which they have succeeded.
    STAMP = File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT), "tested")

    def initialize(root = ROOT)
      @root = root
      @checks = Checks.new(root)
    end

    # The platforms of the gems; all, if PLATFORMS names none.
    def self.platforms = ENV["PLATFORMS"]&.split(",")

    # +tag+: of a finished release.
    def check(tag = nil)
      problems = @checks.problems(tag)
      abort problems.map { |problem| "release: #{problem}" }.join("\n") unless problems.empty?
    end

    # Gives the changes their version, in a commit: the gems have the time and the content of a commit.
    def write_changelog
      return if @checks.changelog.section(@checks.version)

      path = File.join(@root, "CHANGELOG.md")
      before = File.read(path)
      File.write(path, @checks.changelog.release(@checks.version, Date.today))
      system(*commit, chdir: @root) or File.write(path, before) && abort("release: #{commit.join(" ")} failed; CHANGELOG.md is as before")
    end

    def test
      @tree = @checks.tree_id
      return if File.exist?(STAMP) && File.read(STAMP) == @tree

      REQUIRED.each { |command| run(*command) }
      check_unchanged
      FileUtils.mkdir_p(File.dirname(STAMP))
      File.write(STAMP, @tree)
    end

    # Tests and builds take two hours; the gems have the files of the folder.
    def check_unchanged
      check
      abort "release: the last commit is another one than at the beginning" unless @checks.tree_id == @tree
    end

    def clear = FileUtils.rm_rf(PACKAGES)

    # The format of sha256sum.
    def write_checksums
      names = Dir.glob("*.{gem,cdx.json}", base: PACKAGES).sort
      File.write(SUMS, names.map { |name| "#{Digest::SHA256.file(File.join(PACKAGES, name)).hexdigest}  #{name}\n" }.join)
    end

    def explain
      puts <<~TEXT
        #{File.read(SUMS)}
        The gems of version #{@checks.version} are in pkg. Nothing was published. To publish them, run the workflow `release`, or:
          git tag --annotate v#{@checks.version} --message v#{@checks.version} && git push origin HEAD v#{@checks.version}
          rake release:push
      TEXT
    end

    private

    def commit = ["git", "commit", "--quiet", "--message", "Release #{@checks.version}", "--", "CHANGELOG.md"]

    def run(*command) = system(*command, chdir: @root) || abort("release: #{command.join(" ")} failed")
  end
end
