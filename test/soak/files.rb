# frozen_string_literal: true

require "fileutils"
require_relative "pattern"

module Fairlead
  module Soak
    # The files that a server of the soak has, in its public folder and where the application finds them. Like every answer
    # they have a number and so their bytes.
    module Files
      SIZES = [0, 1, 1000, 20_000, 70_000, 600_000, 3_000_000].freeze
      FIRST = 0xf00000000000

      module_function

      def write(server)
        SIZES.each do |size|
          %w[public files].each { |folder| File.binwrite(server.path(File.join(folder, name(size))), Pattern.bytes(id(size), size)) }
        end
      end

      def name(size) = "#{size}.bin"
      def id(size) = FIRST + SIZES.index(size)
    end
  end
end
