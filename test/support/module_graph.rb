# frozen_string_literal: true

require_relative "rust_folder"

module Fairlead
  module Test
    # Finds the dependencies between the top modules of a crate, and compares them with a list. A list has a line for each
    # module, lowest first, with all modules that it uses: "reactor -> clock, connection". Test-only code is left out.
    class ModuleGraph
      # Reads a list: module => the modules that it uses, in order.
      def self.read(list)
        list.lines.map(&:strip).reject(&:empty?).to_h do |line|
          name, used = line.split("->").map(&:strip)
          [name, used.to_s.split(",").map(&:strip)]
        end
      end

      # +source+: the folder with the crate's lib.rs.
      def initialize(source)
        @source = source
        @folder = RustFolder.new(source)
      end

      def modules
        @modules ||= Dir.children(@source).map { |name| name.delete_suffix(".rs") }.uniq.sort - ["lib"] - root.test_modules
      end

      # Returns [module, used module] => the files with that use.
      def edges
        @edges ||= @folder.files.each_with_object(Hash.new { |hash, key| hash[key] = [] }) do |path, edges|
          name = module_of(path)
          @folder.source(path).paths.map { |used| target(used) }.uniq.each { |used| edges[[name, used]] << path unless used == name }
        end
      end

      # Returns sentences about the differences, none if the list is right.
      def differences(list)
        listed = self.class.read(list)
        arrows = listed.flat_map { |name, used| used.map { |other| [name, other] } }
        (modules - listed.keys).map { |name| "#{name} is not listed" } +
          (listed.keys - modules).map { |name| "#{name} is listed and is no module" } +
          (edges.keys - arrows).map { |name, used| "#{name} -> #{used} is not listed: #{edges[[name, used]].join(", ")}" } +
          (arrows - edges.keys).map { |name, used| "#{name} -> #{used} is listed and not used" } +
          arrows.reject { |name, used| above?(listed, used, name) }.map { |name, used| "#{used} does not stand above #{name}" }
      end

      private

      def above?(listed, upper, lower)
        places = [upper, lower].map { |name| listed.keys.index(name) }
        places.all? && places.first < places.last
      end

      def root = @folder.source("lib.rs")

      def module_of(path) = path.split("/").first.delete_suffix(".rs")

      # Returns the module that a path leads to, directly or through a re-export of lib.rs. Other paths stay as they are.
      def target(path)
        first = path.split("::").first
        return first if modules.include?(first)

        @reexports ||= root.reexports
        @reexports.fetch(first, first).split("::").first
      end
    end
  end
end
