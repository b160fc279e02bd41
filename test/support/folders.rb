# frozen_string_literal: true

require "fileutils"
require "tmpdir"

module Fairlead
  module Test
    # Folders for one test.
    module Folders
      # Runs the block in a new folder with these files (path => text), which is removed afterwards.
      def in_folder(files = {}, &block)
        Dir.mktmpdir("fairlead-test-") do |folder|
          files.each do |path, text|
            FileUtils.mkdir_p(File.dirname(File.join(folder, path)))
            File.write(File.join(folder, path), text)
          end
          Dir.chdir(folder, &block)
        end
      end
    end
  end
end
