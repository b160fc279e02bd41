# frozen_string_literal: true

# The one place that loads the native extension (built from ext/fairlead), which defines everything in Fairlead::Native.
require "fairlead/error"
require "fairlead/input"

begin
  require "fairlead/fairlead"
rescue LoadError => e
  raise unless e.path.nil? || e.path == "fairlead/fairlead"

  raise Fairlead::ExtensionError,
        "the native extension is not built for this Ruby (#{RUBY_VERSION}, #{RUBY_PLATFORM}): run bin/setup in a checkout, " \
        "or `gem pristine fairlead` for an installed gem"
end
