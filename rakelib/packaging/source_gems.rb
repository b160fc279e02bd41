# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require_relative "command"
require_relative "platform"

module Packaging
  # The gems with the sources, which compile when they are installed, and the packing of any gem: the same files make the same bytes.
  module SourceGems
    SERVER = "fairlead.gemspec"
    LOAD_TOOL = "ext/load/fairlead-load.gemspec"

    module_function

    # Their paths.
    def build(packages = PACKAGES) = [SERVER, LOAD_TOOL].map { |file| pack(specification(file), ROOT, packages) }

    def specification(file)
      Gem::Specification.load(File.join(ROOT, file))&.dup or raise Impossible, "#{file} cannot be read"
    end

    # The time of all files in a gem, in seconds.
    def source_date = ENV.fetch("SOURCE_DATE_EPOCH") { Command.output("git", "log", "-1", "--format=%ct", chdir: ROOT).chomp }

    # Packs the files of a folder, with the time of the last commit. Returns the path of the gem.
    def pack(spec, folder, packages)
      ENV["SOURCE_DATE_EPOCH"] = source_date
      spec.date = Time.at(Integer(source_date, 10)).utc
      FileUtils.mkdir_p(packages)
      path = File.join(packages, spec.file_name)
      Dir.chdir(folder) { Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Package.build(spec, true, false, path) } }
      path
    end
  end
end
