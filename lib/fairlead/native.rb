# frozen_string_literal: true

require "fairlead/error"
require "fairlead/rack/input"

# Loads the native extension, built from ext/fairlead, which defines Fairlead::Native. bin/setup and RubyGems put it beside this file.
begin
  require "fairlead/fairlead"
rescue LoadError => e
  raise unless e.path == "fairlead/fairlead"
end

unless defined?(Fairlead::Native)
  raise Fairlead::ExtensionError,
        "the native extension is not built for this Ruby (#{RUBY_VERSION}, #{RUBY_PLATFORM}): run bin/setup in a checkout, " \
        "or `gem pristine fairlead` for an installed gem"
end

require "fairlead/realtime/client"
