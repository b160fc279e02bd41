# frozen_string_literal: true

require_relative "rust_source"

module Fairlead
  module Test
    # The source folder of a crate: its files without the files that are compiled for tests only.
    class RustFolder
      # +path+: the folder with the crate's lib.rs or main.rs.
      def initialize(path)
        @path = path
      end

      # Paths below the folder, sorted, without the root of the crate.
      def files
        @files ||= all.sort.reject { |path| root?(path) || test_files.any? { |file| path.start_with?("#{file}.rs", "#{file}/") } }
      end

      # The RustSource of a file.
      def source(path)
        @sources ||= {}
        @sources[path] ||= RustSource.new(File.read(File.join(@path, path)), depth: depth(path))
      end

      private

      def all = Dir.glob("**/*.rs", base: @path)

      def root?(path) = %w[lib.rs main.rs].include?(path)

      def depth(path) = root?(path) ? 0 : path.delete_suffix("/mod.rs").count("/") + 1

      # Without ".rs": files and folders of modules that are for tests only.
      def test_files
        @test_files ||= all.flat_map do |path|
          folder = path.end_with?("/mod.rs") || root?(path) ? File.dirname(path) : path.delete_suffix(".rs")
          source(path).test_modules.map { |name| folder == "." ? name : "#{folder}/#{name}" }
        end
      end
    end
  end
end
