# frozen_string_literal: true

require "open3"
require_relative "changelog"

module Release
  # The conditions for a release of the checkout in a folder.
  class Checks
    def initialize(root)
      @root = root
    end

    # The one version of gems and crates.
    def version = File.read(path("lib/fairlead/version.rb"))[/VERSION = "(.+)"/, 1]

    # Lines of text. +tag+: of a release that is ready to be built.
    def problems(tag = nil)
      [*versions, *tree, *changes, *(tag_problems(tag) if tag)].compact
    end

    def changelog = Changelog.new(File.read(path("CHANGELOG.md")))

    # Identifies the content of the last commit.
    def tree_id = git("rev-parse", "HEAD^{tree}")

    private

    def path(name) = File.join(@root, name)

    def git(*words)
      output, status = Open3.capture2("git", *words, chdir: @root)
      status.success? ? output.strip : raise("git #{words.join(" ")} failed")
    end

    def versions
      crates = File.read(path("Cargo.toml"))[/^\[workspace\.package\]\nversion = "(.+)"/, 1]
      locked = File.read(path("Cargo.lock")).scan(/^name = "(fairlead[\w-]*)"\nversion = "(.+)"\n/)
      others = locked.reject { |_, found| found == version }
      [("lib/fairlead/version.rb has version #{version}, Cargo.toml #{crates}" unless crates == version),
       ("Cargo.lock has #{others.map { |name, found| "#{name} #{found}" }.join(", ")}; run `cargo update --workspace`" if others.any?)]
    end

    def tree
      changed = git("status", "--porcelain", "--untracked-files=all")
      tag = git("tag", "--list", "v#{version}")
      head = git("rev-parse", "HEAD")
      [("there are changes without a commit:\n#{changed}" unless changed.empty?),
       ("the tag #{tag} is another commit; the version needs to grow" unless tag.empty? || git("rev-list", "-n", "1", tag) == head)]
    end

    def tag_problems(tag)
      [("the tag is #{tag}, the version #{version}" unless tag == "v#{version}"),
       ("the tag #{tag} is another commit" unless git("tag", "--points-at", "HEAD").split("\n").include?(tag)),
       ("CHANGELOG.md has no section #{version}" unless changelog.section(version))]
    end

    # Written in an earlier run, or still without a version.
    def changes
      released = changelog.section(version)
      waiting = changelog.section(Changelog::UNRELEASED)
      case [released.to_s.empty?, waiting.to_s.empty?]
      when [true, true] then "CHANGELOG.md has neither a section #{version} nor changes under `# #{Changelog::UNRELEASED}`"
      when [false, false] then "CHANGELOG.md has a section #{version} and changes without a version; the version needs to grow"
      end
    end
  end
end
