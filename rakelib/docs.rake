# frozen_string_literal: true

namespace :docs do
  desc "Write docs/configuration.md from the table of options"
  task :configuration do
    $LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
    require "fairlead"
    File.write("docs/configuration.md", Fairlead::Options::Documentation.markdown)
  end
end
