# frozen_string_literal: true

require "rbconfig"

module Fairlead
  module Soak
    # The checks of a folder: programs that compare Fairlead's figures under a load of one kind with its aims, and end with
    # status 0 when all are met.
    class Checks
      LIB = File.expand_path("../../lib", __dir__)

      def initialize(folder = File.join(__dir__, "checks"))
        @folder = folder
      end

      def names = Dir.children(@folder).grep(/\.rb\z/).map { |file| File.basename(file, ".rb") }.sort

      # Runs them one after another, or those of these names, and returns how many have passed and how many have not.
      def run(chosen = names)
        strangers = chosen - names
        raise ArgumentError, "there is no check #{strangers.join(", ")}; there are #{names.join(", ")}" unless strangers.empty?

        passed = chosen.count { |name| system(RbConfig.ruby, "-I", LIB, File.join(@folder, "#{name}.rb")) }
        [passed, chosen.size - passed]
      end
    end
  end
end
