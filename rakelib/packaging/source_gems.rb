# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require "tmpdir"
require_relative "command"
require_relative "platform"

module Packaging
  # The gems with the sources, which compile when they are installed, and the packing of any gem: the same files make the same bytes.
  module SourceGems
    SERVER = "fairlead.gemspec"
    LOAD_TOOL = "ext/load/fairlead-load.gemspec"

    module_function

    # Their paths.
    def build(packages = PACKAGES)
      [SERVER, LOAD_TOOL].map do |file|
        spec = specification(file)
        pack(spec, of_checkout(spec.files), packages)
      end
    end

    def specification(file)
      Gem::Specification.load(File.join(ROOT, file))&.dup or raise Impossible, "#{file} cannot be read"
    end

    # The time of all files in a gem, in seconds.
    def source_date = ENV.fetch("SOURCE_DATE_EPOCH") { Command.output("git", "log", "-1", "--format=%ct", chdir: ROOT).chomp }

    # The files of the checkout with these names, for pack.
    def of_checkout(names) = names.to_h { |name| [name, File.join(ROOT, name)] }

    # Packs files, from their names in the gem and their paths, with the time of the last commit, and for every user, although the umask of
    # this one may not be so. Returns the path of the gem.
    def pack(spec, files, packages)
      ENV["SOURCE_DATE_EPOCH"] = source_date
      spec.date = Time.at(Integer(source_date, 10)).utc
      spec.files = files.keys
      packed = File.join(File.expand_path(packages), spec.file_name)
      FileUtils.mkdir_p(packages)
      Dir.mktmpdir do |stage|
        files.each { |name, path| copy(path, File.join(stage, name)) }
        Dir.chdir(stage) { Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Package.build(spec, true, false, packed) } }
      end
      packed
    end

    def copy(from, to)
      FileUtils.mkdir_p(File.dirname(to))
      FileUtils.cp(from, to)
      FileUtils.chmod(File.executable?(from) && File.extname(from) != ".so" ? 0o755 : 0o644, to)
    end
    private_class_method :copy
  end
end
