# frozen_string_literal: true

require "rbconfig"

module Fairlead
  module Soak
    # The checks of a folder: programs that compare Fairlead's measurements under a load of one kind with goals, and end with
    # status 0 if all are met.
    class Checks
      LIB = File.expand_path("../../lib", __dir__)

      def initialize(folder = File.join(__dir__, "checks"))
        @folder = folder
      end

      def names = Dir.children(@folder).grep(/\.rb\z/).map { |file| File.basename(file, ".rb") }.sort

      # Runs all checks or the given ones, one after another, and returns the numbers of passed and failed ones.
      def run(chosen = names)
        strangers = chosen - names
        raise ArgumentError, "unknown check #{strangers.join(", ")}; use #{names.join(", ")}" unless strangers.empty?

        passed = chosen.count { |name| system(RbConfig.ruby, "-I", LIB, File.join(@folder, "#{name}.rb")) }
        [passed, chosen.size - passed]
      end
    end
  end
end
