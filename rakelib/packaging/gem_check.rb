# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require "tmpdir"
require_relative "build"
require_relative "native_file"
require_relative "platform_gem"

module Packaging
  # A built gem of one platform, without installing it: its metadata, its files, and the size, the symbols and the libraries of each
  # native one.
  class GemCheck
    LARGEST = 6 * 1024 * 1024

    # The gems of a platform that are in pkg.
    def self.of(platform, packages = PACKAGES)
      version = SourceGems.specification(SourceGems::SERVER).version
      servers = PlatformGem.servers(platform).keys.to_h { |name| ["fairlead-#{version}-#{name}.gem", server_files(platform)] }
      servers.merge("fairlead-load-#{version}-#{platform.of_programs}.gem" => [Build::LOAD_TOOL])
             .map { |name, files| new(File.join(packages, name), platform, files) }.select { |gem| File.exist?(gem.path) }
    end

    def self.server_files(platform) = RUBIES.map { |ruby| "#{ruby}/#{platform.extension}" } + Build::SERVER_PROGRAMS
    private_class_method :server_files

    attr_reader :path

    # +native+: the wanted native files in lib/fairlead.
    def initialize(path, platform, native)
      @path = path
      @platform = platform
      @native = native.map { |name| "lib/fairlead/#{name}" }
    end

    # Lines of text.
    def problems
      found = metadata_problems
      Dir.mktmpdir do |folder|
        Gem::Package.new(@path).extract_files(folder)
        found += @native.flat_map { |name| problems_of_file(File.join(folder, name), name) }
        found << "#{PlatformGem::LICENCES} names no crate" unless File.read(File.join(folder, PlatformGem::LICENCES)).include?("rustls 0.")
      end
      found.map { |problem| "#{File.basename(@path)}: #{problem}" }
    end

    # The specification alone.
    def metadata_problems
      spec = Gem::Package.new(@path).spec
      sources = spec.files.grep(%r{\A(?:crates|ext/fairlead)/|Cargo|extconf|\.rs\z})
      native = spec.files.select { |name| name.match?(%r{\Alib/fairlead/(?:fairlead-\w+|.*\.(?:so|bundle))\z}) }
      {
        "it has sources: #{sources.first(3).join(", ")}" => sources.any?,
        "it compiles" => spec.extensions.any?,
        "its native files are #{native.sort.join(", ")}" => native.sort != @native.sort,
        "it depends on #{spec.runtime_dependencies.map(&:name).join(", ")}" => (spec.runtime_dependencies.map(&:name) - ["rack"]).any?
      }.select { |_, wrong| wrong }.keys
    end

    private

    def problems_of_file(path, name)
      found = []
      found << "has #{File.size(path)} bytes" if File.extname(name) != "" && File.size(path) > LARGEST
      found << "has a path of this machine" if [ROOT, "#{Dir.home}/.cargo"].any? { |place| File.binread(path).include?(place) }
      found << "cannot be executed" if File.extname(name).empty? && !File.executable?(path)
      found += problems_of_elf(NativeFile.new(path), name.end_with?(Build::LOAD_TOOL) ? [] : @platform.loads) unless @platform.darwin?
      found.map { |problem| "#{name} #{problem}" }
    end

    # +loads+: the libraries that it may need.
    def problems_of_elf(file, loads)
      others = file.libraries - loads
      [("needs #{others.join(", ")}" if others.any?),
       ("needs glibc #{file.glibc}" if file.glibc && Gem::Version.new(file.glibc) > Gem::Version.new(@platform.glibc || "0")),
       ("has symbols for debuggers" unless file.stripped?),
       ("does not list its crates" unless file.lists_crates?)].compact
    end
  end
end
