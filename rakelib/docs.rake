# frozen_string_literal: true

desc "Build the reference of the Ruby API in target/reference, from the files that .yardopts lists"
task :docs do
  sh "bin/setup", "--docs"
  sh "yard", "doc", "--fail-on-warning", "--no-cache", "--no-save", "--output-dir", "target/reference"
end

namespace :docs do
  desc "Write docs/guides/configuration.md, and the table in docs/guides/migrating_from_puma.md, from the table of options"
  task :configuration do
    $LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
    require_relative "docs/configuration_reference"
    require_relative "docs/migration_guide"
    File.write("docs/guides/configuration.md", Docs::ConfigurationReference.markdown)
    guide = "docs/guides/migrating_from_puma.md"
    File.write(guide, Docs::MigrationGuide.update(File.read(guide)))
  end
end
