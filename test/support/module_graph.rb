# frozen_string_literal: true

require_relative "rust_folder"

module Fairlead
  module Test
    # Which of the modules right below a crate use which, and whether that is what a list allows. A list has a line for each
    # module, lowest first, with all that it uses: "reactor -> clock, connection". What is compiled for tests only is left out.
    class ModuleGraph
      # Parts of the list: module => the modules that it uses, in their order.
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

      # [module, used module] => the files in which it does.
      def edges
        @edges ||= @folder.files.each_with_object(Hash.new { |hash, key| hash[key] = [] }) do |path, edges|
          name = module_of(path)
          @folder.source(path).paths.map { |used| target(used) }.uniq.each { |used| edges[[name, used]] << path unless used == name }
        end
      end

      # Sentences, none if the list is right.
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

      # The module that a path leads to, directly or by a name that lib.rs has taken from it. What is neither stays as it is.
      def target(path)
        first = path.split("::").first
        return first if modules.include?(first)

        @reexports ||= root.reexports
        @reexports.fetch(first, first).split("::").first
      end
    end
  end
end
