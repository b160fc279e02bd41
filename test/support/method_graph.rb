# frozen_string_literal: true

require "tsort"
require_relative "rust_folder"

module Fairlead
  module Test
    # The files that share the `impl` of one type, and the calls of `self.method()` between them. Files that call each other
    # in a circle are one part in pieces: in each of them a reader has to know all fields of the type.
    class MethodGraph
      IMPL = /^impl\b(?:<(?:[^<>]|<[^<>]*>)*>)?\s+(?:[^{;]*?\bfor\s+)?(?:\w+::)*(?<type>\w+)[^{;]*(?<body>\{(?:[^{}]|\g<body>)*\})/
      METHOD = /^    (?:pub(?:\([^)]*\))?\s+)?(?:const\s+)?(?:unsafe\s+)?fn\s+(\w+)/
      CALL = /\bself\s*\.\s*(\w+)\s*\(/

      # +path+: the folder with the crate's lib.rs or main.rs.
      def initialize(path)
        @folder = RustFolder.new(path)
      end

      # Type => its circles, each a sorted list of files. Types without a circle are left out.
      def circles
        bodies.transform_values { |files| circles_of(files) }.reject { |_, circles| circles.empty? }
      end

      private

      # Type => file => the text of its `impl` blocks there.
      def bodies
        @folder.files.each_with_object(Hash.new { |types, type| types[type] = Hash.new { |files, file| files[file] = +"" } }) do |file, types|
          @folder.source(file).code.to_enum(:scan, IMPL).map { Regexp.last_match }.each do |block|
            types[block[:type]][file] << block[:body]
          end
        end
      end

      def circles_of(files)
        arrows = arrows_between(files)
        each_node = ->(&block) { arrows.each_key(&block) }
        each_child = ->(file, &block) { arrows.fetch(file).each(&block) }
        TSort.strongly_connected_components(each_node, each_child).select { |circle| circle.size > 1 }.map(&:sort)
      end

      # File => the other files that define a method that it calls. A name that several files define is ambiguous and left out.
      def arrows_between(files)
        homes = Hash.new { |methods, name| methods[name] = [] }
        files.each { |file, text| text.scan(METHOD).flatten.uniq.each { |name| homes[name] << file } }
        files.to_h do |file, text|
          [file, text.scan(CALL).flatten.uniq.filter_map { |name| homes[name].first if homes.key?(name) && homes[name].one? }.uniq - [file]]
        end
      end
    end
  end
end
