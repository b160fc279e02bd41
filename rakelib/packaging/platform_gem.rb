# frozen_string_literal: true

require "fileutils"
require_relative "build"
require_relative "licences"
require_relative "platform"
require_relative "source_gems"

module Packaging
  # The gems for one platform: the server's, with an extension for each Ruby and its native programs, and the load tool's. They need
  # neither a compiler nor other gems than Rack.
  class PlatformGem
    LICENCES = "LICENSE-THIRD-PARTY"

    # The first RubyGems that tells musl from glibc. An older one takes a gem for musl also beside glibc, and forgets "gnu" when it reads a
    # lock file. So glibc has two gems, and each RubyGems takes one. On musl, an older one takes the gem for -linux, whose extension cannot be
    # loaded; the message then names the gem that compiles.
    TELLS_MUSL = "3.3.22"

    # No Ruby of a branch has more releases.
    RELEASES = 30

    # A gem before the native files: its specification with the other files, the packages of the workspace in it, and Rust's target.
    Content = Struct.new(:spec, :packages, :target)

    # +packages+: the folder for gems.
    def initialize(platform, packages: PACKAGES, build: Build.new(platform), licences: Licences)
      @platform = platform
      @packages = packages
      @build = build
      @licences = licences
    end

    # The paths of the server's gems, which have the same files.
    def server
      built = files_in(@build.server)
      server_contents.map { |content| pack(content, built) }
    end

    # The paths of the load tool's gem, in a list.
    def load_tool = [pack(load_tool_content, { Build::LOAD_TOOL => @build.load_tool })]

    # All gems of the platform, without building.
    def contents = @platform.musl? ? server_contents : [*server_contents, load_tool_content]

    # RubyGems' platforms of the server's gems, each with the versions of RubyGems that take it.
    def self.servers(platform)
      return { platform.name => ">= 0" } if platform.darwin?

      names = { platform.name => ">= #{TELLS_MUSL}" }
      names[platform.name.delete_suffix("-gnu")] = "< #{TELLS_MUSL}" if platform.gnu?
      names
    end

    # The Rubies that have an extension, and no other: RubyGems then takes the gem that compiles.
    def self.rubies(versions = RUBIES)
      major, first = versions.first.split(".").map { |number| Integer(number, 10) }
      last = Integer(versions.last.split(".").last, 10)
      missing = (first..last).map { |minor| "#{major}.#{minor}" } - versions
      Gem::Requirement.new(">= #{versions.first}", "< #{major}.#{last + 1}.dev",
                           *missing.flat_map { |version| (0..RELEASES).map { |release| "!= #{version}.#{release}" } })
    end

    private

    # RubyGems before 3.3.22 forgets "gnu" in a name, but not in a list.
    def specification(file, platform)
      spec = SourceGems.specification(file)
      spec.platform = Gem::Platform.new(platform.split("-"))
      spec.extensions = []
      spec
    end

    def files_in(folder) = Dir.glob("**/*", base: folder).map { |name| [name, File.join(folder, name)] }.select { |_, path| File.file?(path) }.to_h

    def server_contents
      self.class.servers(@platform).map do |name, rubygems|
        spec = specification(SourceGems::SERVER, name)
        spec.required_rubygems_version = rubygems
        spec.required_ruby_version = self.class.rubies
        spec.files = spec.files.grep(%r{\A(?:exe|lib|sig)/|\A(?:CHANGELOG|README)\.md\z|\ALICENSE\z})
        Content.new(spec, Build::SERVER_PROGRAMS + ["fairlead"], @platform.target)
      end
    end

    def load_tool_content
      spec = specification(SourceGems::LOAD_TOOL, @platform.of_programs)
      spec.files = spec.files.grep(%r{\Aext/load/exe/|\ALICENSE\z})
      Content.new(spec, [Build::LOAD_TOOL], @platform.static_target)
    end

    # Packs the files of a specification and built ones, which come into lib/fairlead.
    def pack(content, built)
      spec = content.spec
      licences = File.join(TARGET, "licences", spec.full_name)
      FileUtils.mkdir_p(File.dirname(licences))
      File.write(licences, @licences.new(content.packages, content.target).text)
      files = SourceGems.of_checkout(spec.files).merge(LICENCES => licences, **built.transform_keys { |name| "lib/fairlead/#{name}" })
      SourceGems.pack(spec, files, @packages)
    end
  end
end
