# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "shellwords"
require_relative "command"
require_relative "debian_packages"
require_relative "platform"

module Packaging
  # The headers of a Ruby for a platform, from Debian's packages, which are unpacked and not installed. With FAIRLEAD_RUBIES, the headers
  # of other Rubies: a folder with a program `ruby` for each, such as 3.4-arm64-darwin/bin/ruby, which prints the RbConfig of that Ruby.
  #
  # Musl's Rubies have the same headers: on 64 bits, both C libraries give the types of Ruby's API the same sizes.
  class Headers
    def initialize(version, platform)
      @version = version
      @platform = platform
    end

    # The path of a program that responds like that Ruby to questions about its RbConfig, for the build script of rb-sys.
    def ruby
      given = ENV.fetch("FAIRLEAD_RUBIES", nil)
      return File.join(given, "#{@version}-#{@platform.name}/bin/ruby") if given
      raise Impossible, "Debian has no Ruby for #{@platform.name}; set FAIRLEAD_RUBIES, see docs/releasing.md" unless @platform.architecture

      File.join(unpacked, "bin/ruby")
    end

    private

    def folder = File.join(CACHE, "rubies", "#{@version}-#{@platform.architecture}")

    def unpacked
      return folder if File.executable?(File.join(folder, "bin/ruby"))

      unpack("#{folder}.partial")
      FileUtils.rm_rf(folder)
      File.rename("#{folder}.partial", folder)
      folder
    end

    def unpack(place)
      FileUtils.rm_rf(place)
      FileUtils.mkdir_p(place)
      names = %W[ruby#{@version}-dev libruby#{@version}].map { |name| "#{name}:#{@platform.architecture}" }
      DebianPackages.download(names, place)
      Dir.glob("*.deb", base: place).each do |file|
        run("dpkg-deb", "--extract", file, ".", chdir: place)
        File.delete(File.join(place, file))
      end
      write_ruby(place)
    end

    # rbconfig.rb finds its paths by its own, and refuses to be read by another Ruby.
    def write_ruby(place)
      config = Dir.glob("usr/lib/*/ruby/*/rbconfig.rb", base: place).first or raise Impossible, "Debian's libruby#{@version} has no rbconfig.rb"
      path = File.join(place, config)
      File.write(path, File.read(path).sub(/^  RUBY_VERSION\.start_with.*?\n    raise .*\n/, ""))
      words = [RbConfig.ruby, "-I", File.join(folder, File.dirname(config))]
      FileUtils.mkdir_p(File.join(place, "bin"))
      File.write(File.join(place, "bin/ruby"), "#!/bin/sh\nexec #{Shellwords.join(words)} \"$@\"\n")
      File.chmod(0o755, File.join(place, "bin/ruby"))
    end

    def run(...) = Command.output(...)
  end
end
