# frozen_string_literal: true

require "json"
require "open3"
require "zlib"

module Fairlead
  module Test
    # The crates that a binary was built from: cargo-auditable's section, which is compressed JSON.
    module CrateList
      SECTION = ".dep-v0"

      # [name, version] of each crate in an ELF file.
      def self.of(path)
        bytes, errors, status = Open3.capture3("objcopy", "--dump-section", "#{SECTION}=/dev/stdout", path, File::NULL, binmode: true)
        raise "#{path} has no section #{SECTION}: #{errors}" unless status.success? && !bytes.empty?

        JSON.parse(Zlib::Inflate.inflate(bytes)).fetch("packages").map { |package| package.values_at("name", "version") }
      end
    end
  end
end
