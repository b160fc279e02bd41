# frozen_string_literal: true

require "fairlead/error"
require_relative "rack/input"

module Fairlead
  # Loads the native extension, built from ext/fairlead, which defines Fairlead::Native. A gem for one platform has an extension for each
  # Ruby, in a folder with its version. bin/setup, and RubyGems for the gem with the sources, put one extension beside this file.
  module Extension
    VERSION = RUBY_VERSION[/\A\d+\.\d+/]
    COMPILE = "use the gem that compiles: `gem uninstall fairlead` and `gem install fairlead --platform ruby`; in a bundle, " \
              "`bundle config set force_ruby_platform true` and `bundle install`"

    class << self
      def load
        built = Dir.glob("[0-9]*", base: __dir__).sort
        built.empty? ? load_compiled : load_built(built)
      end

      private

      def load_compiled
        require "fairlead/fairlead"
      rescue LoadError => e
        raise unless e.path == "fairlead/fairlead"

        missing("run bin/setup in a checkout, or `gem pristine fairlead` for an installed gem")
      end

      # Another C library, or an older one, cannot load a built extension.
      def load_built(versions)
        missing("this gem has extensions for Ruby #{versions.join(", ")}; #{COMPILE}") unless versions.include?(VERSION)
        require File.join(__dir__, VERSION, "fairlead")
      rescue LoadError => e
        raise ExtensionError, "the native extension cannot be loaded: #{e.message}; #{COMPILE}"
      end

      def missing(remedy)
        raise ExtensionError, "the native extension is not built for this Ruby (#{RUBY_VERSION}, #{RUBY_PLATFORM}): #{remedy}"
      end
    end
  end
end

Fairlead::Extension.load
require_relative "realtime/client"
