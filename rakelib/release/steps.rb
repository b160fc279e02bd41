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
    REQUIRED = [%w[bin/test], %w[bin/test --ruby 3.3], %w[bin/test --ruby 3.3 test/gem], %w[bin/supply-chain]].freeze

    # Has the content for which they have succeeded.
    STAMP = File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target"), ROOT), "tested")

    def initialize(checks = Checks.new(ROOT))
      @checks = checks
    end

    # The platforms of the gems; all, if PLATFORMS names none.
    def self.platforms = ENV["PLATFORMS"]&.split(",")

    def check
      problems = @checks.problems
      abort problems.map { |problem| "release: #{problem}" }.join("\n") unless problems.empty?
    end

    # Gives the changes their version, in a commit: the gems have the time and the content of a commit.
    def write_changelog
      return if @checks.changelog.section(@checks.version)

      File.write(File.join(ROOT, "CHANGELOG.md"), @checks.changelog.release(@checks.version, Date.today))
      run("git", "commit", "--quiet", "--message", "Release #{@checks.version}", "--", "CHANGELOG.md")
    end

    def test
      return if File.exist?(STAMP) && File.read(STAMP) == @checks.tree_id

      REQUIRED.each { |command| run(*command) }
      FileUtils.mkdir_p(File.dirname(STAMP))
      File.write(STAMP, @checks.tree_id)
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
          for gem in pkg/*.gem; do gem push "$gem"; done
      TEXT
    end

    private

    def run(*command) = system(*command, chdir: ROOT) || abort("release: #{command.join(" ")} failed")
  end
end
