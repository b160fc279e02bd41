# frozen_string_literal: true

require_relative "gem_check"
require_relative "platform"
require_relative "platform_gem"

module Packaging
  # The tasks gem:native and gem:native:check: all platforms, or one.
  module NativeGems
    PARTS = { server: "the server", load_tool: "the load tool" }.freeze

    module_function

    # Gems that cannot be built here are listed and left out; with a name, this is a failure.
    def build(name)
      missing = Platform.find(name).flat_map { |platform| parts(platform).reject { |part, title| built?(platform, part, title) }.keys }
      abort unless name.nil? || missing.empty?
    end

    # The load tool of glibc's platform also runs beside musl, in one gem.
    def parts(platform) = platform.musl? ? PARTS.slice(:server) : PARTS

    def built?(platform, part, title)
      PlatformGem.new(platform).public_send(part).each do |path|
        puts format("built %<path>s: %<size>.1f MB", path: path, size: File.size(path) / 1e6)
      end
      true
    rescue Impossible => e
      puts "left out #{title} for #{platform.name}: #{e.message}"
      false
    end

    # Checks the gems that are in pkg.
    def check(name)
      results = Platform.find(name).flat_map { |platform| GemCheck.of(platform) }
      abort "no gem was built: run `rake gem:native` first" if results.empty?

      problems = results.flat_map(&:problems)
      problems += Platform.find(name).select(&:runs_here?).flat_map { |platform| used(platform) }
      puts problems
      puts "#{results.size} gems checked, #{problems.size} problems"
      abort unless problems.empty?
    end

    # A fresh system for each Ruby, in which the gems are installed and serve.
    def used(platform)
      gems = GemCheck.of(platform).map(&:path)
      RUBIES.filter_map do |ruby|
        puts "Ruby #{ruby}:"
        script = File.join(__dir__, "bare_use.rb")
        command = [File.join(ROOT, "bin/support/bare-root"), ruby, script, *gems]
        "Ruby #{ruby}: the gems do not work" unless system({ "ARCHITECTURE" => platform.architecture }, *command)
      end
    end
    private_class_method :parts, :built?, :used
  end
end
