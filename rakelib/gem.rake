# frozen_string_literal: true

require_relative "packaging/platform"

desc "Build the gems with the sources, which compile when they are installed, into pkg"
task :gem do
  require_relative "packaging/source_gems"
  puts Packaging::SourceGems.build
end

namespace :gem do
  desc "Build the gems for one platform, or for all that this machine can build for, into pkg"
  task :native, [:platform] do |_, arguments|
    require_relative "packaging/native_gems"
    Packaging::NativeGems.build(arguments[:platform])
  end

  namespace :native do
    desc "Check the built gems: their files, libraries, symbols and sizes; install and use those for this machine"
    task :check, [:platform] do |_, arguments|
      require_relative "packaging/native_gems"
      Packaging::NativeGems.check(arguments[:platform])
    end
  end
end
