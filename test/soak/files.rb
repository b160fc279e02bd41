# frozen_string_literal: true

require "fileutils"
require_relative "pattern"

module Fairlead
  module Soak
    # Files of a server of the soak, in its public folder and in the application's folder. Like every response they have a
    # number, which determines their bytes.
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
